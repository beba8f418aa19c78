(comment) @comment
(string) @text

(function_call name: (_) @call)
(arguments [(identifier) (dot_index_expression)] @reference)
(expression_list [(identifier) (dot_index_expression)] @reference)
(field value: [(identifier) (dot_index_expression)] @reference)
((function_call name: (identifier) @_how) @import (#eq? @_how "require"))
((variable_declaration (assignment_statement
  (variable_list . (identifier))
  (expression_list . (function_call name: (identifier) @_how)))) @import
  (#eq? @_how "require"))

(function_declaration name: (identifier) @name) @definition.function
(function_declaration name: (dot_index_expression
  table: (_) @receiver field: (identifier) @name)) @definition.method
(function_declaration name: (method_index_expression
  table: (_) @receiver method: (identifier) @name)) @definition.method
(assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list . value: (function_definition body: (_)? @body))) @definition.function
(assignment_statement
  (variable_list . name: (dot_index_expression table: (_) @receiver field: (identifier) @name))
  (expression_list . value: (function_definition body: (_)? @body))) @definition.method
(chunk (assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list . value: [
    (table_constructor) (number) (string) (true) (false) (binary_expression)
  ])) @definition.constant)
(chunk (variable_declaration (assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list . value: [
    (table_constructor) (number) (string) (true) (false) (binary_expression)
  ])) @definition.constant))
(table_constructor (field name: (identifier) @name
  value: (function_definition body: (_)? @body)) @definition.function)

(assignment_statement
  (variable_list . name: (identifier) @binding.name)
  (expression_list . value: (_) @binding.value))
(parameters name: (identifier) @local)
(for_generic_clause (variable_list name: (identifier) @local))
(for_numeric_clause name: (identifier) @local)

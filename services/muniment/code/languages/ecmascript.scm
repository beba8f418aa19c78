(comment) @comment
[(string) (template_string) (regex)] @text
(template_substitution) @hole

(call_expression function: [(identifier) (member_expression)] @call)
(call_expression function: (await_expression [(identifier) (member_expression)] @call))
(new_expression constructor: [(identifier) (member_expression)] @call)

(import_statement) @import
(export_statement source: (_)) @import
(export_statement (export_clause)) @import
(export_statement "default" @import)
(variable_declarator
  value: (call_expression function: (identifier) @_require (#eq? @_require "require"))) @import

(function_declaration name: (_) @name) @definition.function
(generator_function_declaration name: (_) @name) @definition.function
(class_declaration name: (_) @name) @definition.class
(method_definition
  name: [(property_identifier) (private_property_identifier)] @name) @definition.method
(method_definition "get" @property)
(method_definition "static" @static)
(variable_declarator name: (identifier) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @definition.function
(variable_declarator name: (identifier) @name
  value: (class body: (_) @body)) @definition.class
(pair key: (property_identifier) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ]) @definition.method
(assignment_expression
  left: (member_expression
    object: (member_expression
      object: (identifier) @receiver
      property: (property_identifier) @_prototype (#eq? @_prototype "prototype"))
    property: (property_identifier) @name)
  right: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ]) @definition.method
(assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ]) @definition.function
(variable_declarator name: (identifier) @name) @definition.constant

(export_statement declaration: (_) @of) @whole
(export_statement
  declaration: (lexical_declaration (variable_declarator) @of)) @whole
(lexical_declaration . (variable_declarator) @of) @whole
(variable_declaration . (variable_declarator) @of) @whole

(variable_declarator name: (identifier) @binding.name value: (_) @binding.value)
(assignment_expression
  left: (member_expression object: (this) property: (_)) @binding.name
  right: (_) @binding.value)

(arrow_function parameter: (identifier) @local)
(catch_clause parameter: (identifier) @local)
(for_in_statement left: (identifier) @local)
[(shorthand_property_identifier_pattern)] @local
(array_pattern (identifier) @local)
(rest_pattern (identifier) @local)
(pair_pattern value: (identifier) @local)

(comment) @comment
[(string) (multiline_string) (character)] @text

(call_expression function: (_) @call)
(struct_initializer . [(identifier) (field_expression)] @call)
(parameter type: (identifier) @reference)
(parameter type: (pointer_type [(identifier) (field_expression)] @reference))
(container_field type: [(identifier) (field_expression)] @reference)
(function_declaration type: (identifier) @reference)
(variable_declaration type: (identifier) @reference)
(field_expression object: (_)) @reference
(call_expression (_) (identifier) @reference)
(return_expression (identifier) @reference)

((variable_declaration (builtin_function (builtin_identifier) @_how)) @import
  (#eq? @_how "@import"))

(variable_declaration (identifier) @name (struct_declaration) @body) @definition.struct
(variable_declaration (identifier) @name (union_declaration) @body) @definition.struct
(variable_declaration (identifier) @name (opaque_declaration) @body) @definition.struct
(variable_declaration (identifier) @name (enum_declaration) @body) @definition.enum
(variable_declaration (identifier) @name (error_set_declaration)) @definition.enum
(source_file (variable_declaration . (identifier) @name
  [(identifier) (field_expression) (integer) (float) (string) (boolean) (call_expression)
   (struct_initializer) (anonymous_struct_initializer) (binary_expression) (array_type)
   (pointer_type) (slice_type) (error_union_type)]) @definition.constant)
(struct_declaration (variable_declaration . (identifier) @name) @definition.constant)
(container_field name: (identifier) @name) @definition.field
(container_field type: (_) @type)
(container_field name: (identifier) @binding.name type: (_) @binding.type)
(function_declaration name: (identifier) @name) @definition.function
(function_declaration type: (_) @type)
(test_declaration [(string) (identifier)] @name (block) @body) @definition.function

(parameter name: (identifier) @binding.name type: (_) @binding.type)
(variable_declaration . (identifier) @binding.name type: (_) @binding.type)
(variable_declaration . (identifier) @binding.name
  [(call_expression) (struct_initializer) (try_expression) (field_expression) (identifier)]
  @binding.value .)
(payload (identifier) @local)

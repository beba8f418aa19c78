[(line_comment) (block_comment)] @comment
[(string_literal) (multiline_string_literal) (character_literal)] @text
(interpolation) @hole
(modifiers (annotation) @attribute)
(annotation (user_type) @reference)

(call_expression . (_) @call)
(constructor_invocation (user_type) @call)
(user_type) @reference
(navigation_expression) @reference
(value_argument (identifier) @reference)
(return_expression (identifier) @reference)
(callable_reference) @reference

(package_header (qualified_identifier) @package)
(import) @import

(class_declaration "interface" name: (identifier) @name (class_body)? @body) @definition.interface
(class_declaration (modifiers (class_modifier) @_enum) name: (identifier) @name
  (enum_class_body)? @body (#eq? @_enum "enum")) @definition.enum
(class_declaration name: (identifier) @name (class_body)? @body) @definition.class
(object_declaration name: (identifier) @name (class_body)? @body) @definition.class
(companion_object (class_body (function_declaration "fun" @static)))
(companion_object (class_body (property_declaration (variable_declaration) @static)))
(type_alias type: (identifier) @name) @definition.type
(enum_entry (identifier) @name) @definition.field
(function_declaration name: (identifier) @name (function_body)? @body) @definition.function
(function_declaration (function_value_parameters) . [(user_type) (nullable_type)] @type)
(function_declaration [(user_type) (nullable_type)] @receiver . name: (identifier))
(secondary_constructor "constructor" @name (block)? @body) @definition.method
(property_declaration (variable_declaration . (identifier) @name @binding.name
  [(user_type) (nullable_type)] @type @binding.type) (getter)? @body) @definition.constant
(property_declaration
  (variable_declaration . (identifier) @name) (getter)? @body) @definition.constant
(property_declaration
  (variable_declaration . (identifier) @binding.name) "=" . (_) @binding.value)
(primary_constructor (class_parameters (class_parameter ["val" "var"] (identifier) @name
  [(user_type) (nullable_type)] @type) @definition.field))
(class_parameter (identifier) @binding.field
  [(user_type) (nullable_type)] @binding.type)

(delegation_specifier (constructor_invocation (user_type) @inherits))
(class_declaration "class"
  (delegation_specifiers (delegation_specifier (user_type) @implements)))
(object_declaration
  (delegation_specifiers (delegation_specifier (user_type) @implements)))
(class_declaration "interface"
  (delegation_specifiers (delegation_specifier (user_type) @inherits)))
(explicit_delegation . (user_type) @implements)

(parameter (identifier) @binding.name [(user_type) (nullable_type)] @binding.type)
(lambda_parameters (variable_declaration . (identifier) @local))
(for_statement (variable_declaration . (identifier) @local))
(type_parameter (identifier) @local)

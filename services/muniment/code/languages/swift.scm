[(comment) (multiline_comment)] @comment
[(line_string_literal) (multi_line_string_literal) (raw_string_literal)] @text
(interpolated_expression) @hole
(modifiers (attribute) @attribute)
(attribute (user_type) @reference)

(call_expression . (_) @call)
(user_type) @reference
(type_identifier) @reference
(navigation_expression) @reference
(value_argument value: (simple_identifier) @reference)
(control_transfer_statement result: (simple_identifier) @reference)
(property_declaration value: (simple_identifier) @reference)
(assignment result: (simple_identifier) @reference)

(import_declaration) @import

(class_declaration "struct" name: (type_identifier) @name) @definition.struct
(class_declaration "enum" name: (type_identifier) @name) @definition.enum
(class_declaration "extension"
  name: (user_type (type_identifier) @name .) @receiver) @definition.other
(class_declaration name: (type_identifier) @name) @definition.class
(protocol_declaration name: (type_identifier) @name) @definition.interface
(typealias_declaration
  name: (type_identifier) @name name: (_)? @type) @definition.type
(associatedtype_declaration name: (type_identifier) @name) @definition.type
(enum_entry name: (simple_identifier) @name) @definition.field
(function_declaration name: (simple_identifier) @name) @definition.function
(function_declaration name: [(user_type) (optional_type)] @type)
(protocol_function_declaration name: (simple_identifier) @name) @definition.method
(protocol_function_declaration name: [(user_type) (optional_type)] @type)
(init_declaration "init" @name) @definition.method
(deinit_declaration "deinit" @name) @definition.method
(subscript_declaration "subscript" @name) @definition.method
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name)
  computed_value: (_) @body) @definition.constant
(property_declaration
  name: (pattern bound_identifier: (simple_identifier) @name)) @definition.constant
(protocol_property_declaration
  name: (pattern bound_identifier: (simple_identifier) @name)) @definition.field
(property_declaration (type_annotation (_) @type))
(protocol_property_declaration (type_annotation (_) @type))
(function_declaration (modifiers (property_modifier) @static))
(property_declaration (modifiers (property_modifier) @static (#eq? @static "static")))

(protocol_declaration (inheritance_specifier inherits_from: (user_type) @inherits))
(class_declaration "class" (inheritance_specifier inherits_from: (user_type) @inherits))
(class_declaration ["struct" "enum" "extension"]
  (inheritance_specifier inherits_from: (user_type) @implements))

(parameter name: (simple_identifier) @binding.name
  [(user_type) (optional_type)] @binding.type)
(property_declaration name: (pattern bound_identifier: (simple_identifier) @binding.name)
  (type_annotation [(user_type) (optional_type)] @binding.type))
(property_declaration name: (pattern bound_identifier: (simple_identifier) @binding.name)
  value: (_) @binding.value)
(if_statement bound_identifier: (simple_identifier) @binding.name
  condition: [(call_expression) (navigation_expression) (simple_identifier)] @binding.value)
(guard_statement bound_identifier: (simple_identifier) @binding.name
  condition: [(call_expression) (navigation_expression) (simple_identifier)] @binding.value)
(for_statement item: (pattern bound_identifier: (simple_identifier) @local))
(lambda_parameter name: (simple_identifier) @local)
(type_parameter (type_identifier) @local)

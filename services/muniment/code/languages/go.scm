(comment) @comment
[(interpreted_string_literal) (raw_string_literal) (rune_literal)] @text

(call_expression function: [(identifier) (selector_expression)] @call)
(composite_literal type: [(type_identifier) (qualified_type)] @call)
[(type_identifier) (qualified_type)] @reference
(argument_list [(identifier) (selector_expression)] @reference)
(return_statement (expression_list [(identifier) (selector_expression)] @reference))
(assignment_statement
  right: (expression_list [(identifier) (selector_expression)] @reference))
(short_var_declaration
  right: (expression_list [(identifier) (selector_expression)] @reference))
(var_spec value: (expression_list [(identifier) (selector_expression)] @reference))
(keyed_element (_) . (literal_element [(identifier) (selector_expression)] @reference))
(literal_value (literal_element [(identifier) (selector_expression)] @reference))

(package_clause (package_identifier) @package)
(import_spec) @import

(function_declaration name: (identifier) @name) @definition.function
(function_declaration result: [(type_identifier) (qualified_type) (pointer_type)] @type)
(function_declaration result: (parameter_list . (parameter_declaration type: (_) @type)))
(method_declaration
  receiver: (parameter_list (parameter_declaration type: (_) @receiver))
  name: (field_identifier) @name) @definition.method
(method_declaration result: [(type_identifier) (qualified_type) (pointer_type)] @type)
(method_declaration result: (parameter_list . (parameter_declaration type: (_) @type)))

(type_declaration . (type_spec name: (type_identifier) @name
  type: (struct_type (field_declaration_list) @body)) .) @definition.struct
(type_declaration "(" (type_spec name: (type_identifier) @name
  type: (struct_type (field_declaration_list) @body)) @definition.struct)
(type_declaration . (type_spec name: (type_identifier) @name
  type: (interface_type)) .) @definition.interface
(type_declaration "(" (type_spec name: (type_identifier) @name
  type: (interface_type)) @definition.interface)
(type_declaration . (type_spec name: (type_identifier) @name) .) @definition.type
(type_declaration "(" (type_spec name: (type_identifier) @name) @definition.type)
(type_alias name: (type_identifier) @name) @definition.type

(field_declaration name: (field_identifier) @name @binding.name
  type: (_) @type @binding.type) @definition.field
(field_declaration !name type: (_) @inherits)
(method_elem name: (field_identifier) @name) @definition.method
(method_elem result: [(type_identifier) (qualified_type) (pointer_type)] @type)
(method_elem result: (parameter_list . (parameter_declaration type: (_) @type)))
(interface_type (type_elem (_) @inherits))

(const_declaration "(" (const_spec name: (identifier) @name) @definition.constant)
(const_declaration . (const_spec name: (identifier) @name) .) @definition.constant
(var_spec_list (var_spec name: (identifier) @name) @definition.constant)
(var_declaration . (var_spec name: (identifier) @name) .) @definition.constant

(parameter_declaration name: (identifier) @binding.name type: (_) @binding.type)
(var_spec name: (identifier) @binding.name type: (_) @binding.type)
(var_spec . name: (identifier) @binding.name value: (expression_list . (_) @binding.value))
(short_var_declaration
  left: (expression_list . (identifier) @binding.name)
  right: (expression_list . (_) @binding.value))
(short_var_declaration left: (expression_list (identifier) @local))
(range_clause left: (expression_list (identifier) @local))

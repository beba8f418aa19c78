(comment) @comment
[(string) (string_literal) (unicode_string_literal) (hex_string_literal)] @text

(call_expression function: (expression [(identifier) (member_expression)]) @call)
(new_expression name: (_) @call)
(emit_statement name: (_) @call)
(revert_statement error: (_) @call)
(modifier_invocation . (_) @call)
(user_defined_type) @reference
(using_directive (type_alias) @reference)
(member_expression) @reference
(call_argument (expression (identifier) @reference))
(return_statement (expression (identifier) @reference))
(assignment_expression right: (expression (identifier) @reference))

(import_directive) @import

(contract_declaration name: (identifier) @name) @definition.class
(interface_declaration name: (identifier) @name) @definition.interface
(library_declaration name: (identifier) @name) @definition.class
(struct_declaration name: (identifier) @name) @definition.struct
(enum_declaration name: (identifier) @name) @definition.enum
(enum_value) @name @definition.field
(struct_member type: (_) @type @binding.type
  name: (identifier) @name @binding.name) @definition.field
(event_definition name: (identifier) @name) @definition.other
(error_declaration name: (identifier) @name) @definition.other
(modifier_definition name: (identifier) @name) @definition.function
(constructor_definition "constructor" @name) @definition.method
(function_definition name: (identifier) @name) @definition.function
(function_definition
  return_type: (return_type_definition . (parameter type: (_) @type) .))
(state_variable_declaration type: (_) @type @binding.type
  name: (identifier) @name @binding.name) @definition.constant
(constant_variable_declaration type: (_) @type
  name: (identifier) @name) @definition.constant
(user_defined_type_definition name: (identifier) @name) @definition.type

(inheritance_specifier ancestor: (_) @inherits)

(parameter type: (_) @binding.type name: (identifier) @binding.name)
(variable_declaration type: (_) @binding.type name: (identifier) @binding.name)

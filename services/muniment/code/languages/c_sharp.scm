(comment) @comment
[
  (string_literal) (verbatim_string_literal) (raw_string_literal) (character_literal)
  (interpolated_string_expression)
] @text
(interpolation) @hole
(attribute_list) @attribute
(attribute name: (_) @reference)

(invocation_expression function: (_) @call)
(object_creation_expression type: (_) @call)
(variable_declaration type: [(identifier) (qualified_name) (generic_name)] @call
  (variable_declarator (implicit_object_creation_expression)))
(primary_constructor_base_type type: (_) @call)

(generic_name (identifier) @reference)
(type_argument_list [(identifier) (qualified_name)] @reference)
(parameter type: [(identifier) (qualified_name)] @reference)
((variable_declaration type: [(identifier) (qualified_name)] @reference)
  (#not-eq? @reference "var"))
(method_declaration returns: [(identifier) (qualified_name)] @reference)
(property_declaration type: [(identifier) (qualified_name)] @reference)
(nullable_type type: [(identifier) (qualified_name)] @reference)
(array_type type: [(identifier) (qualified_name)] @reference)
(cast_expression type: [(identifier) (qualified_name)] @reference)
(typeof_expression type: [(identifier) (qualified_name)] @reference)
(as_expression right: [(identifier) (qualified_name)] @reference)
(is_expression right: [(identifier) (qualified_name)] @reference)
(declaration_pattern type: [(identifier) (qualified_name)] @reference)
(catch_declaration type: [(identifier) (qualified_name)] @reference)
(type_parameter_constraint type: [(identifier) (qualified_name)] @reference)
(member_access_expression) @reference
(argument (identifier) @reference)
(return_statement (identifier) @reference)
(assignment_expression right: (identifier) @reference)
(variable_declarator (identifier) (identifier) @reference)
(arrow_expression_clause (identifier) @reference)

[
  (namespace_declaration name: (_) @package)
  (file_scoped_namespace_declaration name: (_) @package)
]
(using_directive) @import

(class_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(struct_declaration name: (identifier) @name) @definition.struct
(interface_declaration name: (identifier) @name) @definition.interface
(enum_declaration name: (identifier) @name) @definition.enum
(enum_member_declaration name: (identifier) @name) @definition.field
(delegate_declaration name: (identifier) @name) @definition.type
(method_declaration returns: (_) @type name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method
(destructor_declaration name: (identifier) @name) @definition.method
(operator_declaration type: (_) @type operator: _ @name) @definition.method
(conversion_operator_declaration type: (_) @name) @definition.method
(indexer_declaration type: (_) @type "this" @name) @definition.method
(local_function_statement type: (_) @type name: (identifier) @name) @definition.function
(property_declaration type: (_) @type @binding.type name: (identifier) @name @binding.name
  accessors: (_) @body) @definition.field
(property_declaration type: (_) @type @binding.type name: (identifier) @name @binding.name
  value: (_) @body) @definition.field
(event_declaration type: (_) @type name: (identifier) @name) @definition.field
(field_declaration (variable_declaration type: (_) @type @binding.type
  (variable_declarator name: (identifier) @name @binding.name))) @definition.field
(event_field_declaration (variable_declaration type: (_) @type @binding.type
  (variable_declarator name: (identifier) @name @binding.name))) @definition.field
(record_declaration (parameter_list (parameter type: (_) @type @binding.type
  name: (identifier) @name @binding.name) @definition.field))
((modifier) @static (#any-of? @static "static" "const"))

(interface_declaration
  (base_list [(identifier) (qualified_name) (generic_name)] @inherits))
(class_declaration
  (base_list [(identifier) (qualified_name) (generic_name)] @implements)
  (#match? @implements "^([A-Za-z0-9_]+\\.)*I[A-Z]"))
(class_declaration
  (base_list [(identifier) (qualified_name) (generic_name)] @inherits)
  (#not-match? @inherits "^([A-Za-z0-9_]+\\.)*I[A-Z]"))
(record_declaration
  (base_list [(identifier) (qualified_name) (generic_name)] @implements)
  (#match? @implements "^([A-Za-z0-9_]+\\.)*I[A-Z]"))
(record_declaration
  (base_list [(identifier) (qualified_name) (generic_name)] @inherits)
  (#not-match? @inherits "^([A-Za-z0-9_]+\\.)*I[A-Z]"))
(base_list (primary_constructor_base_type type: (_) @inherits))
(struct_declaration
  (base_list [(identifier) (qualified_name) (generic_name)] @implements))

(parameter type: (_) @binding.type name: (identifier) @binding.name)
(variable_declaration type: [
    (identifier) (qualified_name) (generic_name) (nullable_type) (array_type) (predefined_type)
  ] @binding.type
  (variable_declarator name: (identifier) @binding.name))
(variable_declaration type: (implicit_type)
  (variable_declarator name: (identifier) @binding.name (_) @binding.value .))
(foreach_statement type: [(identifier) (qualified_name) (generic_name)] @binding.type
  left: (identifier) @binding.name)
(foreach_statement left: (identifier) @local)
(declaration_pattern type: (_) @binding.type name: (identifier) @binding.name)
(catch_declaration type: (_) @binding.type name: (identifier) @binding.name)
(lambda_expression parameters: (implicit_parameter) @local)
(lambda_expression parameters: (parameter_list (parameter !type name: (identifier) @local)))
(type_parameter name: (identifier) @local)

(raw_string_literal) @text

(new_expression type: (_) @call)
(declaration type: [(type_identifier) (qualified_identifier) (template_type)] @call
  declarator: (init_declarator value: (argument_list)))
; What looks like a function within a function is a variable.
(compound_statement (declaration type: [(type_identifier) (qualified_identifier)] @call
  declarator: (function_declarator)))
(compound_statement (declaration type: [(type_identifier) (qualified_identifier)] @binding.type
  declarator: (function_declarator declarator: (identifier) @binding.name)))
(qualified_identifier) @reference
(field_initializer . [(field_identifier) (qualified_identifier) (template_method)] @reference)

[(using_declaration) (namespace_alias_definition)] @import

(namespace_definition name: (namespace_identifier) @name) @definition.module
(namespace_definition
  name: (nested_namespace_specifier . (namespace_identifier) @name)) @definition.module
(namespace_definition
  name: (nested_namespace_specifier (_) . (_) @name)
  body: (_) @definition.module @body)

(class_specifier name: [
  (type_identifier) @name
  (template_type name: (type_identifier) @name)
  (qualified_identifier name: (type_identifier) @name)
] body: (_)) @definition.class
(struct_specifier name: [
  (template_type name: (type_identifier) @name)
  (qualified_identifier name: (type_identifier) @name)
] body: (_)) @definition.struct
(base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @inherits)
(alias_declaration name: (type_identifier) @name
  type: (type_descriptor) @type) @definition.type
(concept_definition name: (identifier) @name) @definition.other
(template_declaration [
  (class_specifier) (struct_specifier) (function_definition) (alias_declaration)
  (concept_definition)
] @of) @whole

(function_definition
  declarator: [
    (function_declarator declarator: [
      (identifier) (field_identifier) (destructor_name) (operator_name)
    ] @name)
    (pointer_declarator declarator: (function_declarator
      declarator: [(identifier) (field_identifier) (operator_name)] @name))
    (reference_declarator (function_declarator
      declarator: [(identifier) (field_identifier) (operator_name)] @name))
    (operator_cast) @name
  ]) @definition.function
(function_definition
  declarator: [
    (function_declarator declarator: (qualified_identifier scope: (_) @receiver
      name: [(identifier) (destructor_name) (operator_name)] @name))
    (pointer_declarator declarator: (function_declarator
      declarator: (qualified_identifier scope: (_) @receiver
        name: [(identifier) (operator_name)] @name)))
    (reference_declarator (function_declarator
      declarator: (qualified_identifier scope: (_) @receiver
        name: [(identifier) (operator_name)] @name)))
    (function_declarator declarator: (qualified_identifier
      name: (qualified_identifier scope: (_) @receiver
        name: [(identifier) (destructor_name) (operator_name)] @name)))
    (pointer_declarator declarator: (function_declarator
      declarator: (qualified_identifier name: (qualified_identifier scope: (_) @receiver
        name: [(identifier) (operator_name)] @name))))
    (reference_declarator (function_declarator
      declarator: (qualified_identifier name: (qualified_identifier scope: (_) @receiver
        name: [(identifier) (operator_name)] @name))))
  ]) @definition.method
(function_definition type: [
  (type_identifier) (qualified_identifier) (template_type) (primitive_type)
] @type)
(field_declaration
  declarator: [
    (function_declarator declarator: [(field_identifier) (operator_name)] @name)
    (pointer_declarator declarator: (function_declarator
      declarator: [(field_identifier) (operator_name)] @name))
    (reference_declarator (function_declarator
      declarator: [(field_identifier) (operator_name)] @name))
  ]) @definition.method
(field_declaration type: [
  (type_identifier) (qualified_identifier) (template_type) (primitive_type)
] @type)
(field_declaration_list (declaration
  declarator: (function_declarator
    declarator: [(identifier) (destructor_name) (operator_name)] @name)) @definition.method)
(field_declaration_list (template_declaration (declaration
  declarator: (function_declarator
    declarator: [(identifier) (operator_name)] @name)) @definition.method))
(field_declaration (storage_class_specifier) @static (#eq? @static "static"))
(field_declaration_list
  (function_definition (storage_class_specifier) @static (#eq? @static "static")))
(field_declaration type: (_) @type @binding.type
  declarator: (reference_declarator (field_identifier) @name @binding.name)) @definition.field

(parameter_declaration type: (_) @binding.type
  declarator: (reference_declarator (identifier) @binding.parameter))
(optional_parameter_declaration type: (_) @binding.type
  declarator: [
    (identifier) @binding.parameter
    (pointer_declarator declarator: (identifier) @binding.parameter)
    (reference_declarator (identifier) @binding.parameter)
  ])
(declaration type: [(qualified_identifier) (template_type)] @binding.type
  declarator: [
    (identifier) @binding.name
    (pointer_declarator declarator: (identifier) @binding.name)
    (init_declarator declarator: [
      (identifier) @binding.name
      (pointer_declarator declarator: (identifier) @binding.name)
    ])
  ])
(declaration
  declarator: (init_declarator declarator: (reference_declarator (identifier) @binding.name)
    value: (_) @binding.value))
(declaration type: (type_identifier) @binding.type
  declarator: (init_declarator
    declarator: (reference_declarator (identifier) @binding.name)))
(declaration type: (placeholder_type_specifier)
  declarator: (init_declarator declarator: [
      (identifier) @binding.name
      (pointer_declarator declarator: (identifier) @binding.name)
    ]
    value: (_) @binding.value))
(for_range_loop type: [(type_identifier) (qualified_identifier)] @binding.type
  declarator: [
    (identifier) @binding.name
    (pointer_declarator declarator: (identifier) @binding.name)
    (reference_declarator (identifier) @binding.name)
  ])
(for_range_loop declarator: [
  (identifier) @local
  (pointer_declarator declarator: (identifier) @local)
  (reference_declarator (identifier) @local)
])
(structured_binding_declarator (identifier) @local)
(type_parameter_declaration (type_identifier) @local)

(comment) @comment
[(string_literal) (system_lib_string) (char_literal)] @text

(call_expression function: (_) @call)
[(type_identifier) (sized_type_specifier)] @reference
(argument_list [(identifier) (field_expression)] @reference)
(argument_list (pointer_expression argument: (identifier) @reference))
(return_statement (identifier) @reference)
(init_declarator value: (identifier) @reference)
(init_declarator value: (pointer_expression argument: (identifier) @reference))
(assignment_expression right: (identifier) @reference)
(initializer_pair value: (identifier) @reference)
(initializer_list (identifier) @reference)

(preproc_include) @import

(preproc_def name: (identifier) @name value: (_)) @definition.macro
(preproc_function_def name: (identifier) @name value: (_)? @body) @definition.macro

(function_definition type: (_) @type
  declarator: [
    (function_declarator declarator: (identifier) @name)
    (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
    (pointer_declarator declarator: (pointer_declarator
      declarator: (function_declarator declarator: (identifier) @name)))
  ]) @definition.function

(struct_specifier name: (type_identifier) @name body: (_)) @definition.struct
(union_specifier name: (type_identifier) @name body: (_)) @definition.struct
(enum_specifier name: (type_identifier) @name body: (_)) @definition.enum
(enumerator name: (identifier) @name) @definition.constant
(type_definition
  type: [(struct_specifier !name body: (_) @body) (union_specifier !name body: (_) @body)]
  declarator: (type_identifier) @name) @definition.struct
(type_definition
  type: (enum_specifier !name body: (_) @body)
  declarator: (type_identifier) @name) @definition.enum
((type_definition
  type: [
    (struct_specifier name: (type_identifier) @type body: (_))
    (union_specifier name: (type_identifier) @type body: (_))
    (enum_specifier name: (type_identifier) @type body: (_))
  ]
  declarator: (type_identifier) @name @definition.type)
  (#not-eq? @name @type))
((type_definition
  type: [
    (struct_specifier name: (type_identifier) @type !body)
    (union_specifier name: (type_identifier) @type !body)
    (enum_specifier name: (type_identifier) @type !body)
    (type_identifier) @type
    (primitive_type)
    (sized_type_specifier)
  ]
  declarator: [
    (type_identifier) @name
    (pointer_declarator declarator: (type_identifier) @name)
    (array_declarator declarator: (type_identifier) @name)
    (function_declarator declarator: (type_identifier) @name)
    (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (type_identifier) @name)))
  ]) @definition.type
  (#not-eq? @name @type))

(field_declaration type: (_) @type @binding.type
  declarator: [
    (field_identifier) @name @binding.name
    (pointer_declarator declarator: (field_identifier) @name @binding.name)
    (array_declarator declarator: (field_identifier) @name @binding.name)
    (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (field_identifier) @name @binding.name)))
  ]) @definition.field
(declaration type: (_) @type
  declarator: [
    (identifier) @name
    (pointer_declarator declarator: (identifier) @name)
    (array_declarator declarator: (identifier) @name)
    (init_declarator declarator: [
      (identifier) @name
      (pointer_declarator declarator: (identifier) @name)
      (array_declarator declarator: (identifier) @name)
      (pointer_declarator declarator: (array_declarator declarator: (identifier) @name))
    ])
    (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (identifier) @name)))
  ]) @definition.constant

(parameter_declaration type: (_) @binding.type
  declarator: [
    (identifier) @binding.parameter
    (pointer_declarator declarator: (identifier) @binding.parameter)
    (pointer_declarator
      declarator: (pointer_declarator declarator: (identifier) @binding.parameter))
    (array_declarator declarator: (identifier) @binding.parameter)
  ])
(declaration type: [
    (type_identifier) (struct_specifier) (union_specifier) (enum_specifier) (primitive_type)
    (sized_type_specifier)
  ] @binding.type
  declarator: [
    (identifier) @binding.name
    (pointer_declarator declarator: (identifier) @binding.name)
    (array_declarator declarator: (identifier) @binding.name)
    (init_declarator declarator: [
      (identifier) @binding.name
      (pointer_declarator declarator: (identifier) @binding.name)
      (array_declarator declarator: (identifier) @binding.name)
    ])
  ])

[(line_comment) (block_comment)] @comment
[(string_literal) (raw_string_literal) (char_literal)] @text
(attribute_item) @attribute

(call_expression function: [(identifier) (scoped_identifier) (field_expression)] @call)
(call_expression function: (generic_function function: (_) @call))
(macro_invocation macro: (_) @call)
(struct_expression name: (_) @call)
[(type_identifier) (scoped_type_identifier)] @reference

(use_declaration) @import
(mod_item !body) @import

(function_item name: (identifier) @name) @definition.function
(function_signature_item name: (identifier) @name) @definition.function
(function_item return_type: (_) @type)
(function_signature_item return_type: (_) @type)
((function_item parameters: (parameters) @static) (#not-match? @static "\\bself\\b"))
(struct_item name: (type_identifier) @name) @definition.struct
(union_item name: (type_identifier) @name) @definition.struct
(enum_item name: (type_identifier) @name) @definition.enum
(enum_variant name: (identifier) @name) @definition.field
(field_declaration name: (field_identifier) @name @binding.name
  type: (_) @type @binding.type) @definition.field
(trait_item name: (type_identifier) @name) @definition.trait
(trait_item bounds: (trait_bounds [
  (type_identifier) (scoped_type_identifier) (generic_type)
] @inherits))
(type_item name: (type_identifier) @name) @definition.type
(const_item name: (identifier) @name type: (_) @type) @definition.constant
(static_item name: (identifier) @name type: (_) @type) @definition.constant
(mod_item name: (identifier) @name body: (_)) @definition.module
(macro_definition name: (identifier) @name) @definition.macro
(impl_item type: [
  (type_identifier) @name @receiver
  (generic_type type: (type_identifier) @name @receiver)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @name) @receiver)
  (scoped_type_identifier name: (type_identifier) @name) @receiver
]) @definition.other
(impl_item trait: (_) @implements)

(parameter pattern: (identifier) @binding.name type: (_) @binding.type)
(let_declaration pattern: (identifier) @binding.name type: (_) @binding.type)
(let_declaration pattern: (identifier) @binding.name value: (_) @binding.value)
(closure_parameters (identifier) @local)
(for_expression pattern: (identifier) @local)
(tuple_pattern (identifier) @local)
(tuple_struct_pattern (identifier) @local)

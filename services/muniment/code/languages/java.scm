[(line_comment) (block_comment)] @comment
[(string_literal) (character_literal)] @text
(modifiers [(annotation) (marker_annotation)] @attribute)
[(annotation name: (_) @reference) (marker_annotation name: (_) @reference)]

(method_invocation !object name: (identifier) @call)
(method_invocation object: (_) name: (identifier) @upto) @call
(object_creation_expression type: (_) @call)
(explicit_constructor_invocation constructor: (_) @call)

([(type_identifier) (scoped_type_identifier) (field_access)] @reference
  (#not-eq? @reference "var"))
(method_reference . (_) (identifier)) @reference
(method_reference . [(identifier) (field_access)] @reference "new")
(argument_list (identifier) @reference)
(return_statement (identifier) @reference)
(variable_declarator value: (identifier) @reference)
(assignment_expression right: (identifier) @reference)
(array_initializer (identifier) @reference)
(element_value_pair value: (identifier) @reference)
(method_invocation object: (identifier) @reference)

(package_declaration [(identifier) (scoped_identifier)] @package)
(import_declaration) @import

(class_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(enum_declaration name: (identifier) @name) @definition.enum
(interface_declaration name: (identifier) @name) @definition.interface
(annotation_type_declaration name: (identifier) @name) @definition.interface
(method_declaration type: (_) @type name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method
(compact_constructor_declaration name: (identifier) @name) @definition.method
(annotation_type_element_declaration
  type: (_) @type name: (identifier) @name) @definition.method
(enum_constant name: (identifier) @name) @definition.field
(field_declaration type: (_) @type @binding.type
  declarator: (variable_declarator name: (identifier) @name @binding.name)) @definition.field
(constant_declaration type: (_) @type @binding.type
  declarator: (variable_declarator name: (identifier) @name @binding.name)) @definition.field
(record_declaration parameters: (formal_parameters
  (formal_parameter type: (_) @type @binding.type name: (identifier) @name @binding.name)
  @definition.field))
(modifiers "static" @static)

(superclass (_) @inherits)
(super_interfaces (type_list (_) @implements))
(extends_interfaces (type_list (_) @inherits))

(formal_parameter type: (_) @binding.type name: (identifier) @binding.name)
(spread_parameter (variable_declarator name: (identifier) @local))
(local_variable_declaration type: (_) @binding.type
  declarator: (variable_declarator name: (identifier) @binding.name)
  (#not-eq? @binding.type "var"))
(local_variable_declaration
  declarator: (variable_declarator name: (identifier) @binding.name value: (_) @binding.value))
(resource type: (_) @binding.type name: (identifier) @binding.name
  (#not-eq? @binding.type "var"))
(resource name: (identifier) @binding.name value: (_) @binding.value)
(enhanced_for_statement type: (_) @binding.type name: (identifier) @binding.name
  (#not-eq? @binding.type "var"))
(enhanced_for_statement name: (identifier) @local)
(catch_formal_parameter (catch_type (_) @binding.type) name: (identifier) @binding.name)
(instanceof_expression right: (_) @binding.type name: (identifier) @binding.name)
(inferred_parameters (identifier) @local)
(lambda_expression parameters: (identifier) @local)
(type_parameter (type_identifier) @local)

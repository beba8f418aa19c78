(class_heritage (extends_clause value: (_) @inherits))
(class_heritage (implements_clause (_) @implements))
(abstract_class_declaration name: (_) @name) @definition.class
(interface_declaration name: (_) @name) @definition.interface
(extends_type_clause type: (_) @inherits)
(enum_declaration name: (_) @name) @definition.enum
(enum_body name: (property_identifier) @name @definition.field)
(enum_assignment name: (property_identifier) @name) @definition.field
(type_alias_declaration name: (_) @name) @definition.type
(internal_module name: (identifier) @name) @definition.module
(module name: (identifier) @name) @definition.module
(function_signature name: (_) @name) @definition.function
(method_signature
  name: [(property_identifier) (private_property_identifier)] @name) @definition.method
(abstract_method_signature
  name: [(property_identifier) (private_property_identifier)] @name) @definition.method
(property_signature name: (property_identifier) @name @binding.name
  type: (type_annotation (_) @type @binding.type)) @definition.field
(public_field_definition
  name: [(property_identifier) (private_property_identifier)] @name) @definition.field
(public_field_definition
  name: [(property_identifier) (private_property_identifier)] @binding.name
  type: (type_annotation (_) @type @binding.type))
(public_field_definition
  name: [(property_identifier) (private_property_identifier)] @binding.name
  value: (_) @binding.value)
(public_field_definition "static" @static)

(function_declaration return_type: (type_annotation (_) @type))
(function_signature return_type: (type_annotation (_) @type))
(method_definition return_type: (type_annotation (_) @type))
(method_signature return_type: (type_annotation (_) @type))
(abstract_method_signature return_type: (type_annotation (_) @type))
(variable_declarator
  value: (arrow_function return_type: (type_annotation (_) @type))) @of

(variable_declarator name: (identifier) @binding.name
  type: (type_annotation (_) @binding.type))
(required_parameter pattern: (identifier) @binding.name
  type: (type_annotation (_) @binding.type))
(optional_parameter pattern: (identifier) @binding.name
  type: (type_annotation (_) @binding.type))
(required_parameter (accessibility_modifier) pattern: (identifier) @binding.field
  type: (type_annotation (_) @binding.type))
(required_parameter pattern: (identifier) @local)
(optional_parameter pattern: (identifier) @local)

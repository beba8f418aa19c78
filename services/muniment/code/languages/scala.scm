[(comment) (block_comment)] @comment
[(string) (interpolated_string) (character_literal)] @text
(interpolation) @hole
(annotation) @attribute
(annotation name: (_) @reference)

(call_expression function: (_) @call)
(instance_expression . [(type_identifier) (generic_type) (stable_type_identifier)] @call)
[(type_identifier) (stable_type_identifier) (field_expression)] @reference
(arguments (identifier) @reference)
(val_definition value: (identifier) @reference)
(function_definition body: (identifier) @reference)
(block (identifier) @reference .)

(package_clause name: (_) @package)
(import_declaration) @import
(export_declaration) @import

(class_definition name: (identifier) @name) @definition.class
(object_definition name: (identifier) @name) @definition.class
(trait_definition name: (identifier) @name) @definition.trait
(enum_definition name: (identifier) @name) @definition.enum
(simple_enum_case name: (identifier) @name) @definition.field
(full_enum_case name: (identifier) @name) @definition.field
(type_definition name: (type_identifier) @name type: (_)? @type) @definition.type
(given_definition name: (identifier) @name) @definition.constant
(function_definition name: (_) @name) @definition.function
(function_declaration name: (_) @name) @definition.function
(function_definition return_type: (_) @type)
(function_declaration return_type: (_) @type)
(val_definition pattern: (identifier) @name) @definition.constant
(var_definition pattern: (identifier) @name) @definition.constant
(val_declaration name: (identifier) @name type: (_) @type) @definition.constant
(var_declaration name: (identifier) @name type: (_) @type) @definition.constant
(val_definition type: (_) @type)
(var_definition type: (_) @type)
(extension_definition parameters: (parameters . (parameter type: (_) @name @receiver)))
  @definition.other

(extends_clause "extends" . (_) @inherits)
(extends_clause "with" . (_) @implements)

(class_parameter name: (identifier) @binding.field type: (_) @binding.type)
(parameter name: (identifier) @binding.name type: (_) @binding.type)
(val_definition pattern: (identifier) @binding.name type: (_) @binding.type)
(var_definition pattern: (identifier) @binding.name type: (_) @binding.type)
(val_definition pattern: (identifier) @binding.name value: (_) @binding.value)
(var_definition pattern: (identifier) @binding.name value: (_) @binding.value)
(lambda_expression parameters: (identifier) @local)
(bindings (binding name: (identifier) @local))
(enumerator . (identifier) @local)
(case_clause pattern: (identifier) @local)

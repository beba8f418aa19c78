(class_heritage (_) @inherits)
(field_definition property: (_) @name @binding.name) @definition.field
(field_definition property: (_) @binding.name value: (_) @binding.value)
(field_definition "static" @static)
(formal_parameters (identifier) @local)
(assignment_pattern left: (identifier) @local)

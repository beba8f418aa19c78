(comment) @comment
[(string) (string_content) (nowdoc_string)] @text
(attribute_list) @attribute
(attribute [(name) (qualified_name)] @reference)

(function_call_expression function: [(name) (qualified_name) (variable_name)] @call)
(member_call_expression object: (_) name: (name) @upto) @call
(nullsafe_member_call_expression object: (_) name: (name) @upto) @call
(scoped_call_expression scope: (_) name: (name) @upto) @call
(object_creation_expression [(name) (qualified_name)] @call)

((named_type [(name) (qualified_name)] @reference)
  (#not-match? @reference "^(static|self|parent)$"))
(class_constant_access_expression . [(name) (qualified_name)] @reference
  (name) @_last (#eq? @_last "class"))
((class_constant_access_expression . (_) (name) @_last) @reference (#not-eq? @_last "class"))
(scoped_property_access_expression . [(name) (qualified_name)] @reference)
(binary_expression operator: "instanceof" right: [(name) (qualified_name)] @reference)
(argument [(name) (qualified_name) (member_access_expression)] @reference)

(namespace_definition name: (_) @package)
(namespace_use_declaration) @import
[
  (require_expression) (require_once_expression) (include_expression) (include_once_expression)
] @import

(class_declaration name: (name) @name) @definition.class
(interface_declaration name: (name) @name) @definition.interface
(trait_declaration name: (name) @name) @definition.trait
(enum_declaration name: (name) @name) @definition.enum
(enum_case name: (name) @name) @definition.field
(function_definition name: (name) @name) @definition.function
(function_definition return_type: (_) @type)
(method_declaration name: (name) @name) @definition.method
(method_declaration return_type: (_) @type)
(method_declaration (static_modifier) @static)
(const_declaration (const_element . (name) @name)) @definition.constant
(property_declaration
  (property_element name: (variable_name (name) @name))) @definition.field
(property_declaration type: (_) @type @binding.type
  (property_element name: (variable_name (name) @binding.name)))
(property_declaration (static_modifier) @static)
((function_call_expression function: (name) @_how
  arguments: (arguments . (argument (string (string_content) @name)))) @definition.constant
  (#eq? @_how "define"))

(class_declaration (base_clause [(name) (qualified_name)] @inherits))
(interface_declaration (base_clause [(name) (qualified_name)] @inherits))
(class_interface_clause [(name) (qualified_name)] @implements)
(use_declaration [(name) (qualified_name)] @inherits)

(simple_parameter type: (_) @binding.type name: (variable_name) @binding.name)
(simple_parameter name: (variable_name) @local)
(property_promotion_parameter
  type: (_) @binding.type name: (variable_name) @binding.name)
(property_promotion_parameter
  type: (_) @binding.type name: (variable_name) @binding.field)
(assignment_expression
  left: [(variable_name) (member_access_expression)] @binding.name right: (_) @binding.value)
(foreach_statement (variable_name) . (variable_name) @local)
(foreach_statement (pair (variable_name) @local))
(catch_clause type: (type_list . (named_type) @binding.type .) name: (variable_name) @binding.name)
(static_variable_declaration name: (variable_name) @local)

(comment) @comment
(string) @text
(interpolation) @hole
(block) @block

(call function: (_) @call)
(decorator (call function: (_) @call))

(import_statement) @import
(import_from_statement) @import
(future_import_statement) @import

(class_definition name: (identifier) @name) @definition.class
(class_definition
  superclasses: (argument_list [(identifier) (attribute) (subscript)] @inherits))
(function_definition name: (identifier) @name) @definition.function
(function_definition return_type: (_) @type)
(block . (expression_statement (string) @doc))

(decorated_definition definition: (_) @of) @whole
(decorated_definition
  (decorator [(identifier) @property (attribute attribute: (identifier) @property)])
  definition: (_) @of
  (#any-of? @property "property" "cached_property" "abstractproperty" "classproperty"
    "hybrid_property" "lazy_property" "cached_class_property" "getter"))
(decorated_definition
  (decorator (identifier) @static)
  definition: (_) @of
  (#any-of? @static "staticmethod" "classmethod"))

(expression_statement
  (assignment
    left: (identifier) @name @binding.name
    type: (_) @type @binding.type) @definition.constant)
(expression_statement
  (assignment
    left: (identifier) @name @binding.name
    right: (_) @binding.value) @definition.constant)
(type_alias_statement left: (type (identifier) @name)) @definition.type

(assignment left: (attribute object: (identifier) attribute: (identifier)) @binding.name
  type: (_) @binding.type)
(assignment left: (attribute object: (identifier) attribute: (identifier)) @binding.name
  right: (_) @binding.value)
(typed_parameter . (identifier) @binding.name type: (_) @binding.type)
(typed_default_parameter name: (identifier) @binding.name type: (_) @binding.type)
(named_expression name: (identifier) @binding.name value: (_) @binding.value)
(as_pattern (_) @binding.value alias: (as_pattern_target (identifier) @binding.name))

(parameters (identifier) @local)
(lambda_parameters (identifier) @local)
(default_parameter name: (identifier) @local)
(list_splat_pattern (identifier) @local)
(dictionary_splat_pattern (identifier) @local)
(pattern_list (identifier) @local)
(tuple_pattern (identifier) @local)
(for_statement left: (identifier) @local)
(for_in_clause left: (identifier) @local)

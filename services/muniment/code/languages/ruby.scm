(comment) @comment
[(string) (regex) (heredoc_body) (string_array) (symbol_array) (subshell)] @text
(interpolation) @hole

((call !receiver method: [(identifier) (constant) (super)] @call)
  (#not-match? @call
    "^(require|require_relative|load|include|extend|prepend|attr_(accessor|reader|writer)|private|protected|public|module_function|private_class_method)$"))
(call receiver: (_) method: (_) @upto) @call
[(scope_resolution) (constant)] @reference
(argument_list [(identifier) (instance_variable)] @reference)
((body_statement (identifier) @reference)
  (#not-match? @reference "^(private|protected|public|module_function)$"))
(then (identifier) @reference)
(block_body (identifier) @reference)
(assignment right: (identifier) @reference)
(pair value: (identifier) @reference)
(array (identifier) @reference)
(return (argument_list (identifier) @reference))
(call receiver: (identifier) @reference)
(binary (identifier) @reference)
(if condition: (identifier) @reference)
(if_modifier condition: (identifier) @reference)
(unless condition: (identifier) @reference)
(unless_modifier condition: (identifier) @reference)
(interpolation (identifier) @reference)

((call method: (identifier) @_how arguments: (argument_list . (string)) ) @import
  (#any-of? @_how "require" "require_relative" "load"))

(module body: (body_statement (method name: (_) @name) @definition.method))
(module name: [
  (constant) @name
  (scope_resolution name: (constant) @name)
]) @definition.module
(class name: [
  (constant) @name
  (scope_resolution name: (constant) @name)
]) @definition.class
(method name: (_) @name body: (_)? @body) @definition.function
(singleton_method name: (_) @name @static body: (_)? @body) @definition.method
(singleton_class (body_statement (method name: (_) @static)))
(assignment left: (constant) @name @binding.name
  right: (_) @binding.value) @definition.constant
((call method: (identifier) @_how
  arguments: (argument_list (simple_symbol) @name @definition.field))
  (#any-of? @_how "attr_accessor" "attr_reader" "attr_writer"))
(alias name: (identifier) @name) @definition.function

(superclass [(constant) (scope_resolution)] @inherits)
((call !receiver method: (identifier) @_how
  arguments: (argument_list [(constant) (scope_resolution)] @implements))
  (#any-of? @_how "include" "extend" "prepend"))

(assignment left: [(identifier) (instance_variable) (class_variable)] @binding.name
  right: (_) @binding.value)
(operator_assignment left: [(identifier) (instance_variable) (class_variable)] @binding.name
  right: (_) @binding.value)
(method_parameters (identifier) @local)
(block_parameters (identifier) @local)
(lambda_parameters (identifier) @local)
(optional_parameter name: (identifier) @local)
(keyword_parameter name: (identifier) @local)
(splat_parameter name: (identifier) @local)
(hash_splat_parameter name: (identifier) @local)
(block_parameter name: (identifier) @local)
(left_assignment_list (identifier) @local)
(for pattern: (identifier) @local)
(exception_variable (identifier) @local)

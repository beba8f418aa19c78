(comment) @comment
[(string) (charlist) (sigil)] @text
(interpolation) @hole

((call target: (identifier) @call)
  (#not-match? @call "^(def|defp|defmacro|defmacrop|defmodule|defprotocol|defimpl|defstruct|defguard|defdelegate|use|import|alias|require|if|unless|case|cond|with|for|fn|quote|unquote|doc|moduledoc|typedoc|spec|type|callback|impl|behaviour)$"))
(call target: (dot (_) (identifier)) @call)
(alias) @reference
(arguments (identifier) @reference)

((call target: (identifier) @_how) @import
  (#any-of? @_how "use" "import" "alias" "require"))

((call target: (identifier) @_how (arguments . (alias) @name) (do_block) @body)
  @definition.module (#eq? @_how "defmodule"))
((call target: (identifier) @_how (arguments . (alias) @name) (do_block) @body)
  @definition.interface (#eq? @_how "defprotocol"))
((call target: (identifier) @_how
  (arguments . (alias) @name (keywords (pair value: (alias) @receiver))) (do_block) @body)
  @definition.other (#eq? @_how "defimpl"))
((call target: (identifier) @_how
  (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: (call target: (identifier) @name))
    (binary_operator left: (identifier) @name)
  ]) (do_block)? @body) @definition.function
  (#any-of? @_how "def" "defp" "defdelegate" "defguard"))
((call target: (identifier) @_how
  (arguments . [
    (call target: (identifier) @name)
    (binary_operator left: (call target: (identifier) @name))
  ]) (do_block)? @body) @definition.macro
  (#any-of? @_how "defmacro" "defmacrop"))

((unary_operator operand: (call target: (identifier) @_how (arguments))) @attribute
  (#any-of? @_how "doc" "moduledoc" "typedoc" "spec" "impl"))
((unary_operator operand: (call target: (identifier) @_how (arguments . (string) @doc)))
  (#eq? @_how "moduledoc"))
((do_block
  (unary_operator operand: (call target: (identifier) @_how (arguments . (string) @doc)))
  . (unary_operator)? . (call) @of)
  (#eq? @_how "doc"))
(binary_operator left: (identifier) @binding.name operator: "=" right: (_) @binding.value)

(comment) @comment
[(string) (raw_string) (ansi_c_string) (heredoc_body)] @text
[(command_substitution) (expansion) (simple_expansion)] @hole

((command name: (command_name (word) @call)) (#not-match? @call "^(source|\\.)$"))
((command name: (command_name (word) @_how)) @import (#any-of? @_how "source" "."))

(function_definition name: (word) @name) @definition.function
(program (variable_assignment name: (variable_name) @name) @definition.constant)
(program (declaration_command
  (variable_assignment name: (variable_name) @name) @definition.constant))
(variable_assignment name: (variable_name) @local)
(simple_expansion (variable_name) @reference)
(expansion (variable_name) @reference)

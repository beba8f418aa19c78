(jsx_opening_element name: [(identifier) (member_expression)] @call
  (#match? @call "^[A-Z]|[.]"))
(jsx_self_closing_element name: [(identifier) (member_expression)] @call
  (#match? @call "^[A-Z]|[.]"))
((jsx_text) @text (#match? @text "\\S"))

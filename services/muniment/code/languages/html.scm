(comment) @comment
(quoted_attribute_value) @text

((element (start_tag (tag_name) @_tag) . (text) @name) @definition.module
  (#match? @_tag "^([Tt][Ii][Tt][Ll][Ee]|[Hh][1-6])$"))
([
  (start_tag (attribute (attribute_name) @_attribute
    (quoted_attribute_value (attribute_value) @name)))
  (self_closing_tag (attribute (attribute_name) @_attribute
    (quoted_attribute_value (attribute_value) @name)))
] @definition.other
  (#eq? @_attribute "id"))

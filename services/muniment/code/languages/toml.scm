(comment) @comment
(string) @text

(document (pair . (_) @name) @definition.other)
(table . [(bare_key) (dotted_key) (quoted_key)] @name . (pair) @body) @definition.other
(table . [(bare_key) (dotted_key) (quoted_key)] @name) @definition.other
(table_array_element
  . [(bare_key) (dotted_key) (quoted_key)] @name . (pair) @body) @definition.other
(table_array_element . [(bare_key) (dotted_key) (quoted_key)] @name) @definition.other

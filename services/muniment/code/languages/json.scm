(comment) @comment
(string) @text

(document (object (pair
  key: (string (string_content) @name) value: [(object) (array)] @body) @definition.other))
(document (object (pair key: (string (string_content) @name)) @definition.other))

[(comment) (marginalia)] @comment
((literal) @text (#match? @text "^'"))

(create_table . (keyword_create) (object_reference) @name) @definition.other
(create_view (object_reference) @name (create_query) @body) @definition.other
(create_materialized_view (object_reference) @name (create_query) @body) @definition.other
(create_function (object_reference) @name (function_body) @body) @definition.function
(create_type (object_reference) @name) @definition.type
(create_trigger (keyword_trigger) . (object_reference) @name) @definition.other
(create_index column: (identifier) @name) @definition.other
(create_schema (identifier) @name) @definition.module
(create_sequence (object_reference) @name) @definition.other

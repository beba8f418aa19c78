[(comment) (js_comment)] @comment
(string_value) @text

(stylesheet (rule_set (selectors) @name (block) @body) @definition.other)
(stylesheet (media_statement (block
  (rule_set (selectors) @name (block) @body) @definition.other)))
(stylesheet (keyframes_statement (keyframes_name) @name
  (keyframe_block_list) @body) @definition.other)

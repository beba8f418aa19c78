(comment) @comment
[(double_quote_scalar) (single_quote_scalar) (block_scalar)] @text
[(block_mapping) (block_sequence)] @block

(document (block_node (block_mapping (block_mapping_pair
  key: (_) @name value: (block_node) @body) @definition.other)))
(document (block_node (block_mapping (block_mapping_pair key: (_) @name) @definition.other)))

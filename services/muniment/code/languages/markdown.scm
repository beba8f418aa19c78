(section . (atx_heading heading_content: (inline) @name) @body) @definition.module
(setext_heading heading_content: (paragraph) @name (_) @body) @definition.module

"""A finished answer's Markdown as HTML for the chat page, made in processes of their own, tenant by tenant."""

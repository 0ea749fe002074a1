"""Tool calls as model families write them: parsers, prompts and grammars. Knows no API and no engine."""

"""The buffers of an editor -> diagnostics, fixes and rule texts, by the language server protocol (extra `lsp`)."""

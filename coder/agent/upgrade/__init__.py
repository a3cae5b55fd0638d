"""Self-upgrade: an agent replaces itself by its server's newer program while shells and commands continue."""

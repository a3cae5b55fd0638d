"""An agent replaces itself by its server's newer program while shells and commands go on."""

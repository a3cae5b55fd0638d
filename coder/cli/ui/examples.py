"""Examples in the help of commands: command -> (description, line). A test parses each line.

This module covers workspaces, templates and accounts; operator_examples.py has the commands of operators.
"""

from __future__ import annotations

from coder.cli.ui.operator_examples import OPERATOR_EXAMPLES

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "agent": (
        (
            "Run the agent of an external machine with its token in a file",
            "coder agent --agent-url https://coder.example.com --agent-token-file ~/.coder-token",
        ),
    ),
    "agent install": (
        (
            "Attach this machine as a workspace, also after a reboot",
            "coder agent install --agent-url https://coder.example.com --agent-token-file ~/.coder-token",
        ),
        (
            "Install for the whole machine, with shells that run as one user",
            "coder agent install --system --run-as alice --agent-url https://coder.example.com "
            "--agent-token-file /root/token",
        ),
        (
            "Show what would be written, without writing it",
            "coder agent install --dry-run --agent-url https://coder.example.com --agent-token-file ~/.coder-token",
        ),
    ),
    "agent uninstall": (
        ("Remove the current user's service", "coder agent uninstall"),
        ("Remove the machine-wide service", "coder agent uninstall --system"),
    ),
    "autoupdate": (
        ("Update to the active version at every start", "coder autoupdate my-workspace always"),
        ("Keep the current version", "coder autoupdate my-workspace never"),
    ),
    "completion": (
        ("Set up completion for your current shell", "coder completion"),
        ("Print the script for another shell", "coder completion --shell fish --print"),
    ),
    "config-ssh": (
        ("Write host entries for all your workspaces to ~/.ssh/config", "coder config-ssh"),
        ("Show what would change, without changing it", "coder config-ssh --dry-run"),
        ("Pass an option to SSH", 'coder config-ssh -o "ForwardAgent yes"'),
    ),
    "completion words": (("List the commands that start with wo", "coder completion words wo"),),
    "connect exists": (("Check whether a host is reachable", "coder connect exists my-workspace.coder"),),
    "create": (
        ("Create a workspace and answer the template's prompts", "coder create my-workspace"),
        (
            "Set the template and its parameters, without prompts",
            "coder create my-workspace -t docker --parameter region=eu -y",
        ),
        ("Create a workspace for another user", "coder create alice/her-workspace -t docker"),
        ("Copy template and parameters from another workspace", "coder create second --copy-parameters-from first"),
    ),
    "debug trace": (
        ("Watch the connection select a path", "coder debug trace my-workspace --time 30s"),
        ("Capture packets for Wireshark", "coder debug trace my-workspace --pcap-file trace.pcap"),
    ),
    "delete": (
        ("Delete a workspace and its resources", "coder delete my-workspace"),
        ("Delete a workspace whose resources cannot be destroyed", "coder delete my-workspace --orphan"),
    ),
    "dotfiles": (
        ("Apply your dotfiles to this workspace", "coder dotfiles git@github.com:alice/dotfiles.git"),
        ("Use a branch, without prompts", "coder dotfiles https://github.com/alice/dotfiles --branch laptop -y"),
    ),
    "exp example-error validation": (
        ("Show a validation error", "coder exp example-error validation --magic-word wrong"),
    ),
    "exp mcp configure claude-code": (
        ("Connect Claude Code to this deployment", "coder exp mcp configure claude-code ."),
    ),
    "exp mcp configure claude-desktop": (
        ("Connect Claude Desktop to this deployment", "coder exp mcp configure claude-desktop"),
    ),
    "exp mcp configure cursor": (
        ("Connect Cursor to this deployment, for this project only", "coder exp mcp configure cursor --project"),
    ),
    "exp mcp server": (
        ("Serve all tools on standard input and output", "coder exp mcp server"),
        ("Serve read-only tools", "coder exp mcp server --allowed-tools coder_list_workspaces,coder_get_workspace"),
    ),
    "exp prompt-example multi-select": (
        ("Select several items", "coder exp prompt-example multi-select --things=a,b"),
    ),
    "exp prompt-example multi-select-no-defaults": (
        ("Select several items, with none preselected", "coder exp prompt-example multi-select-no-defaults"),
    ),
    "exp prompt-example rich-multi-select": (
        ("Set a parameter with several values", "coder exp prompt-example rich-multi-select"),
    ),
    "exp prompt-example rich-parameter": (("Set a parameter", "coder exp prompt-example rich-parameter"),),
    "exp prompt-example select": (("Select an item", "coder exp prompt-example select"),),
    "exp rpty": (
        ("Open a terminal that survives a disconnect", "coder exp rpty my-workspace"),
        ("Reattach to a terminal", "coder exp rpty my-workspace --reconnect 6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"),
    ),
    "exp sync complete": (("Mark a unit complete", "coder exp sync complete database"),),
    "exp sync list": (("List the units and their states", "coder exp sync list"),),
    "exp sync ping": (("Check that the agent answers", "coder exp sync ping"),),
    "exp sync start": (
        ("Wait for a unit's dependencies, then mark it started", "coder exp sync start web --timeout 10m"),
    ),
    "exp sync status": (("Show what a unit still waits for", "coder exp sync status web"),),
    "exp sync want": (("Make the unit web depend on two others", "coder exp sync want web database cache"),),
    "external-auth access-token": (
        ("Print the token of a Git provider in a workspace script", "coder external-auth access-token github"),
        (
            "Print another field of the provider's answer",
            "coder external-auth access-token slack --extra authed_user.id",
        ),
    ),
    "external-workspaces agent-instructions": (
        ("Print the command to run on the machine", "coder external-workspaces agent-instructions build-server"),
        ("Print the instructions as JSON", "coder external-workspaces agent-instructions build-server -o json"),
    ),
    "external-workspaces create": (
        (
            "Create a workspace for an existing machine",
            "coder external-workspaces create build-server --template external",
        ),
        (
            "Create it without prompts, for a script",
            "coder external-workspaces create build-server --template external --parameter arch=arm64 -y",
        ),
    ),
    "external-workspaces health": (
        ("Show the machine's health and its connection", "coder external-workspaces health build-server"),
        (
            "Print the health of one agent as JSON, for monitoring",
            "coder external-workspaces health alice/build-server.gpu -o json",
        ),
    ),
    "external-workspaces list": (
        ("List your external workspaces", "coder external-workspaces list"),
        ("List every user's external workspaces as JSON", "coder external-workspaces list --all -o json"),
    ),
    "external-workspaces rotate-token": (
        (
            "Rotate a token; the old one is valid until the new one is used",
            "coder external-workspaces rotate-token build-server",
        ),
    ),
    "favorite": (("Pin a workspace to the top of lists", "coder favorite my-workspace"),),
    "gitaskpass": (("Answer a prompt of git", "coder gitaskpass \"Username for 'https://github.com': \""),),
    "gitssh": (("Test your key at a Git provider", "coder gitssh -- git@github.com"),),
    "list": (
        ("List your workspaces", "coder list"),
        ("List the running workspaces of all users", 'coder list --search "status:running"'),
        ("Print only names, for a script", "coder list --column workspace"),
    ),
    "login": (
        ("Log in with the browser", "coder login https://coder.example.com"),
        (
            "Log in with a token, without a browser",
            "coder login https://coder.example.com --token abcdefghij-0123456789abcdefghijkl",
        ),
        ("Log in to the last deployment again", "coder login"),
    ),
    "login token": (("Print the session token, for a script", "coder login token"),),
    "logout": (
        ("Delete the session locally and on the server", "coder logout"),
        ("Log out without a prompt", "coder logout -y"),
    ),
    "logs": (
        ("Print the logs of the last build and of the agent", "coder logs my-workspace"),
        ("Follow new log lines", "coder logs my-workspace --follow"),
        ("Print the logs of the previous build", "coder logs my-workspace --build-number -1"),
    ),
    "netcheck": (
        ("Check which relays this machine reaches, and their latency", "coder netcheck"),
        ("Print the report as text", "coder netcheck --output text"),
    ),
    "notifications custom": (
        ("Send yourself a notification from a script", 'coder notifications custom "Build done" "The image is ready."'),
    ),
    "notifications test": (("Send yourself a test notification", "coder notifications test"),),
    "open app": (
        ("Open an application in the browser", "coder open app my-workspace jupyter"),
        ("Open it through a workspace proxy", "coder open app my-workspace jupyter --region eu"),
    ),
    "open vscode": (
        ("Open a folder of a workspace", "coder open vscode my-workspace src/project"),
        (
            "Add a session token, for an editor that is not logged in",
            "coder open vscode my-workspace --generate-token",
        ),
    ),
    "ping": (
        ("Ping a workspace until Ctrl-C", "coder ping my-workspace"),
        ("Ping three times", "coder ping my-workspace -n 3"),
    ),
    "port-forward": (
        ("Forward localhost:8080 to port 8080 of the workspace", "coder port-forward my-workspace --tcp 8080"),
        ("Forward a different local port", "coder port-forward my-workspace --tcp 9000:8080"),
        ("Forward a range of TCP ports and a UDP port", "coder port-forward my-workspace --tcp 3000-3010 --udp 5353"),
    ),
    "publickey": (
        ("Print the public key to add at your Git provider", "coder publickey"),
        ("Generate a new key pair", "coder publickey --reset"),
    ),
    "rename": (("Rename a workspace", "coder rename old-name new-name"),),
    "restart": (
        ("Stop a workspace and start it again", "coder restart my-workspace"),
        ("Restart with a changed parameter, without a prompt", "coder restart my-workspace --parameter region=us -y"),
    ),
    "schedule extend": (
        ("Extend the stop time by two hours", "coder schedule extend my-workspace 2h"),
        ("Extend another user's workspace by 30 minutes", "coder schedule extend alice/her-workspace 30m"),
    ),
    "schedule show": (
        ("Show when your workspaces start and stop", "coder schedule show"),
        ("Show the schedules of all running workspaces", 'coder schedule show --all --search "status:running"'),
    ),
    "schedule start": (
        ("Start a workspace on weekdays", "coder schedule start my-workspace 9:00AM Mon-Fri Europe/Berlin"),
        ("Turn autostart off", "coder schedule start my-workspace manual"),
    ),
    "schedule stop": (
        ("Stop a workspace eight hours after each start", "coder schedule stop my-workspace 8h"),
        ("Turn autostop off", "coder schedule stop my-workspace manual"),
    ),
    "secret create": (
        ("Create a secret, with its value read from a prompt", "coder secret create db-password"),
        (
            "Create a secret that workspaces get as an environment variable",
            "coder secret create db-password --env DB_PASSWORD",
        ),
    ),
    "secret delete": (("Delete a secret", "coder secret delete db-password"),),
    "secret disable": (("Keep a secret, but stop passing it to workspaces", "coder secret disable db-password"),),
    "secret enable": (("Pass a secret to workspaces again", "coder secret enable db-password"),),
    "secret import": (
        ("Import the variables of an .env file", "coder secret import .env"),
        ("Import JSON from standard input", "coder secret import --input-format json -"),
    ),
    "secret list": (
        ("List your secrets, without their values", "coder secret list"),
        ("Print one secret's settings as JSON", "coder secret list db-password -o json"),
    ),
    "secret update": (
        ("Replace the value, read from a prompt", "coder secret update db-password"),
        ("Change the environment variable", "coder secret update db-password --env DATABASE_PASSWORD"),
    ),
    "sharing add": (
        ("Share a workspace with a user", "coder sharing add my-workspace --user bob:use"),
        ("Give a group the admin role on a workspace", "coder sharing add my-workspace --group backend:admin"),
    ),
    "sharing remove": (("Remove a user's access", "coder sharing remove my-workspace --user bob"),),
    "sharing status": (("List the users and groups with access", "coder sharing status my-workspace"),),
    "show": (
        ("Show the agents of a workspace", "coder show my-workspace"),
        ("Show applications and metadata as well", "coder show my-workspace --details"),
    ),
    "speedtest": (
        ("Measure download speed for ten seconds", "coder speedtest my-workspace -t 10s"),
        ("Measure upload speed over a direct connection", "coder speedtest my-workspace --direct --direction up"),
    ),
    "ssh": (
        ("Start a shell", "coder ssh my-workspace"),
        ("Run a command", "coder ssh my-workspace git status"),
        ("Connect to one agent of another user's workspace", "coder ssh alice/her-workspace.gpu"),
        ("Forward port 8080 of the workspace to this machine", "coder ssh my-workspace -R 8080:localhost:8080"),
    ),
    "start": (
        ("Start a workspace and watch the build", "coder start my-workspace"),
        ("Start with a changed parameter", "coder start my-workspace --parameter region=us"),
    ),
    "stat": (
        ("Show CPU, memory and disk usage", "coder stat"),
        ("Print JSON, for a template's metadata", "coder stat --output json"),
    ),
    "stat cpu": (
        ("Show the CPU cores in use", "coder stat cpu"),
        ("Show CPU usage of the host", "coder stat cpu --host"),
    ),
    "stat disk": (("Show usage of the disk that holds /home", "coder stat disk --path /home"),),
    "stat mem": (("Show memory usage in mebibytes", "coder stat mem --prefix Mi"),),
    "state pull": (
        ("Save the Terraform state of a workspace to a file", "coder state pull my-workspace state.json"),
        ("Print the state of an earlier build", "coder state pull my-workspace --build 3"),
    ),
    "state push": (
        ("Replace a broken state", "coder state push my-workspace state.json"),
        ("Replace the state without starting a build", "coder state push my-workspace state.json --no-build"),
    ),
    "stop": (
        ("Stop a workspace", "coder stop my-workspace -y"),
        ("Stop another user's workspace", "coder stop alice/her-workspace"),
    ),
    "task create": (
        ("Create a task", 'coder task create "Fix the flaky test" --template claude'),
        (
            "Read the prompt from standard input and print only the id",
            "coder task create --template claude --stdin --quiet",
        ),
    ),
    "task delete": (("Delete two tasks", "coder task delete first-task second-task -y"),),
    "task list": (
        ("List your tasks", "coder task list"),
        ("List the active tasks of all users as JSON", "coder task list --all --status active -o json"),
    ),
    "task logs": (("Print the conversation of a task", "coder task logs my-task"),),
    "task pause": (("Pause a task and stop its workspace", "coder task pause my-task"),),
    "task resume": (
        ("Resume a paused task", "coder task resume my-task"),
        ("Resume without waiting for the workspace", "coder task resume my-task --no-wait"),
    ),
    "task send": (
        ("Send more input to a task", 'coder task send my-task "Also run the linter"'),
        ("Read the input from standard input", "coder task send my-task --stdin"),
    ),
    "task status": (
        ("Show the state of a task", "coder task status my-task"),
        ("Watch a task until it finishes", "coder task status my-task --watch"),
    ),
    "templates archive": (
        ("Archive the versions that failed to import", "coder templates archive docker"),
        ("Archive unused versions as well", "coder templates archive docker --all -y"),
    ),
    "templates create": (
        ("Create a template from the current directory", "coder templates create my-template"),
        (
            "Create a private template from another directory",
            "coder templates create my-template -d ./docker --private",
        ),
    ),
    "templates delete": (("Delete a template that no workspace uses", "coder templates delete old-template"),),
    "templates edit": (
        ("Stop workspaces 24 hours after each start", "coder templates edit docker --default-ttl 24h"),
        (
            "Change display name and icon",
            'coder templates edit docker --display-name "Docker containers" --icon /icon/docker.png',
        ),
        ("Deprecate a template", 'coder templates edit docker --deprecated "Use kubernetes instead."'),
    ),
    "templates init": (
        ("Start from an example template", "coder templates init --id scratch my-template"),
        ("Choose an example from a list", "coder templates init"),
    ),
    "templates list": (
        ("List the templates you can use", "coder templates list"),
        ("Print only names, for a script", "coder templates list --column name"),
    ),
    "templates presets list": (
        ("List the presets of the active version", "coder templates presets list docker"),
        ("List the presets of an earlier version", "coder templates presets list docker --template-version v1"),
    ),
    "templates pull": (
        ("Download the files of a template", "coder templates pull docker ./docker"),
        ("Write one version as a tar archive to standard output", "coder templates pull docker --version v1 --tar"),
    ),
    "templates push": (
        ("Create or update a template from the current directory", "coder templates push my-template"),
        (
            "Push another directory, with a variable and a message",
            'coder templates push my-template -d ./docker --variable image=debian -m "newer image"',
        ),
        ("Push a version without activating it", "coder templates push my-template --activate=false"),
    ),
    "templates versions archive": (("Archive two versions", "coder templates versions archive docker v1 v2"),),
    "templates versions list": (
        ("List the versions of a template", "coder templates versions list docker"),
        ("Include archived versions, as JSON", "coder templates versions list docker --include-archived -o json"),
    ),
    "templates versions promote": (
        (
            "Make a version the active one",
            "coder templates versions promote --template docker --template-version v2",
        ),
    ),
    "templates versions unarchive": (("Unarchive a version", "coder templates versions unarchive docker v1"),),
    "tokens create": (
        ("Create a token that expires in 30 days", "coder tokens create --name ci --lifetime 720h"),
        (
            "Create a token that can only read workspaces",
            "coder tokens create --name reader --scope workspace:read --lifetime 30d",
        ),
    ),
    "tokens list": (
        ("List your tokens", "coder tokens list"),
        ("List every user's tokens, expired ones included", "coder tokens list --all --include-expired"),
    ),
    "tokens remove": (
        ("Expire a token", "coder tokens remove ci"),
        ("Delete a token", "coder tokens remove ci --delete"),
    ),
    "tokens view": (("Show a token's scopes and its last use", "coder tokens view ci"),),
    "unfavorite": (("Unpin a workspace", "coder unfavorite my-workspace"),),
    "update": (
        ("Update a workspace to the template's active version", "coder update my-workspace"),
        (
            "Update with a new parameter, without prompts",
            "coder update my-workspace --parameter region=us --use-parameter-defaults",
        ),
    ),
    "version": (
        ("Show the version", "coder version"),
        ("Print JSON for a script", "coder version -o json"),
    ),
    "whoami": (
        ("Show your user and deployment", "coder whoami"),
        ("Print JSON for a script", "coder whoami -o json"),
    ),
    "vscodessh": (
        (
            "Connect as an editor extension does",
            "coder vscodessh --url-file url --session-token-file token --network-info-dir net coder-vscode--alice--dev",
        ),
    ),
    "wireguard add": (
        ("Add a phone, whose app scans the QR code", "coder wireguard add phone"),
        (
            "Add a laptop for one workspace; access expires in 7 days",
            "coder wireguard add laptop --workspace my-workspace --expires 7d --file laptop.conf",
        ),
    ),
    "wireguard list": (("List your devices and their last handshakes", "coder wireguard list"),),
    "wireguard remove": (("Revoke a lost phone", "coder wireguard remove phone"),),
    **OPERATOR_EXAMPLES,
}

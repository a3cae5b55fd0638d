"""Examples that help shows: command -> (what for, line). A test parses each line.

Here is what people do in their workspaces and with their account; operator_examples.py has the rest.
"""

from __future__ import annotations

from coder.cli.operator_examples import OPERATOR_EXAMPLES

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "agent": (
        (
            "Run the agent of an external machine, its token in a file",
            "coder agent --agent-url https://coder.example.com --agent-token-file ~/.coder-token",
        ),
    ),
    "agent install": (
        (
            "Let this machine be a workspace from now on, also after it starts again",
            "coder agent install --agent-url https://coder.example.com --agent-token-file ~/.coder-token",
        ),
        (
            "For the whole machine, with shells of one user",
            "coder agent install --system --run-as alice --agent-url https://coder.example.com "
            "--agent-token-file /root/token",
        ),
        (
            "See what would be written",
            "coder agent install --dry-run --agent-url https://coder.example.com --agent-token-file ~/.coder-token",
        ),
    ),
    "agent uninstall": (
        ("Take the service of this user off the machine", "coder agent uninstall"),
        ("Take the service of the whole machine off", "coder agent uninstall --system"),
    ),
    "autoupdate": (
        ("Take the newest version at every start", "coder autoupdate my-workspace always"),
        ("Stay with the version there is", "coder autoupdate my-workspace never"),
    ),
    "completion": (
        ("Let the shell you use complete commands and names", "coder completion"),
        ("Print the script for another shell", "coder completion --shell fish --print"),
    ),
    "config-ssh": (
        ("Write hosts for all your workspaces into ~/.ssh/config", "coder config-ssh"),
        ("See what would change, without changing it", "coder config-ssh --dry-run"),
        ("Pass an option on to SSH", 'coder config-ssh -o "ForwardAgent yes"'),
    ),
    "create": (
        ("Make a workspace and answer the template's questions", "coder create my-workspace"),
        (
            "Choose the template and give values, without questions",
            "coder create my-workspace -t docker --parameter region=eu -y",
        ),
        ("Make one for somebody else", "coder create alice/her-workspace -t docker"),
        ("Take template and values of another workspace", "coder create second --copy-parameters-from first"),
    ),
    "debug trace": (
        ("Watch how the connection finds its path", "coder debug trace my-workspace --time 30s"),
        ("Keep the packets for Wireshark", "coder debug trace my-workspace --pcap-file trace.pcap"),
    ),
    "delete": (
        ("Delete a workspace with everything it holds", "coder delete my-workspace"),
        ("Give up one whose resources cannot be destroyed any more", "coder delete my-workspace --orphan"),
    ),
    "dotfiles": (
        ("Bring your settings into this workspace", "coder dotfiles git@github.com:alice/dotfiles.git"),
        ("Take a branch, without questions", "coder dotfiles https://github.com/alice/dotfiles --branch laptop -y"),
    ),
    "exp mcp configure claude-code": (
        ("Let Claude Code work with this deployment", "coder exp mcp configure claude-code ."),
    ),
    "exp mcp configure claude-desktop": (
        ("Let Claude Desktop work with this deployment", "coder exp mcp configure claude-desktop"),
    ),
    "exp mcp configure cursor": (
        ("Let Cursor work with this deployment, in this project only", "coder exp mcp configure cursor --project"),
    ),
    "exp mcp server": (
        ("Serve the tools to a program that starts this", "coder exp mcp server"),
        ("Only those that read", "coder exp mcp server --allowed-tools coder_list_workspaces,coder_get_workspace"),
    ),
    "exp rpty": (
        ("A terminal that outlives its connection", "coder exp rpty my-workspace"),
        ("Come back to one", "coder exp rpty my-workspace --reconnect 6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"),
    ),
    "exp sync complete": (("Say that something others wait for is done", "coder exp sync complete database"),),
    "exp sync list": (("What scripts have told of themselves", "coder exp sync list"),),
    "exp sync ping": (("Whether the agent listens", "coder exp sync ping"),),
    "exp sync start": (("Wait until what it needs is there, then begin", "coder exp sync start web --timeout 10m"),),
    "exp sync status": (("What a script still waits for", "coder exp sync status web"),),
    "exp sync want": (("Let web wait for two others", "coder exp sync want web database cache"),),
    "external-auth access-token": (
        ("A token of a Git provider, in a script of a workspace", "coder external-auth access-token github"),
        ("Another field of what the provider gave", "coder external-auth access-token slack --extra authed_user.id"),
    ),
    "external-workspaces agent-instructions": (
        ("What to run on the machine", "coder external-workspaces agent-instructions build-server"),
        ("For a program that sets it up", "coder external-workspaces agent-instructions build-server -o json"),
    ),
    "external-workspaces create": (
        (
            "Make a workspace of a machine you have already",
            "coder external-workspaces create build-server --template external",
        ),
        (
            "Without questions, for a script",
            "coder external-workspaces create build-server --template external --parameter arch=arm64 -y",
        ),
    ),
    "external-workspaces health": (
        ("Is the machine well, and how is it reached", "coder external-workspaces health build-server"),
        ("One of several agents, for a monitor", "coder external-workspaces health alice/build-server.gpu -o json"),
    ),
    "external-workspaces list": (
        ("Your external workspaces", "coder external-workspaces list"),
        ("Everybody's, for a script", "coder external-workspaces list --all -o json"),
    ),
    "external-workspaces rotate-token": (
        (
            "A new token; the old one is good until the new one is used",
            "coder external-workspaces rotate-token build-server",
        ),
    ),
    "favorite": (("Let a workspace stand first in lists", "coder favorite my-workspace"),),
    "list": (
        ("List your workspaces", "coder list"),
        ("Those of everybody that run", 'coder list --search "status:running"'),
        ("Names alone, for a script", "coder list --column workspace"),
    ),
    "login": (
        ("Sign in with the browser", "coder login https://coder.example.com"),
        ("Sign in without one", "coder login https://coder.example.com --token abcdefghij-0123456789abcdefghijkl"),
        ("Sign in again where you were", "coder login"),
    ),
    "login token": (("Print the session's token, for a script", "coder login token"),),
    "logout": (
        ("End the session here and at the server", "coder logout"),
        ("Without a question", "coder logout -y"),
    ),
    "logs": (
        ("What the last build and the agent said", "coder logs my-workspace"),
        ("Go on reading as more is said", "coder logs my-workspace --follow"),
        ("What the build before the last said", "coder logs my-workspace --build-number -1"),
    ),
    "netcheck": (
        ("Which relays this machine reaches, and how fast", "coder netcheck"),
        ("In words", "coder netcheck --output text"),
    ),
    "notifications custom": (
        ("Send yourself a message, from a script", 'coder notifications custom "Build done" "The image is ready."'),
    ),
    "notifications test": (("Send yourself a message to see whether it comes", "coder notifications test"),),
    "open app": (
        ("Open an application in the browser", "coder open app my-workspace jupyter"),
        ("Through the workspace proxy near you", "coder open app my-workspace jupyter --region eu"),
    ),
    "open vscode": (
        ("Open a folder of a workspace", "coder open vscode my-workspace src/project"),
        (
            "With a token in the address, for an editor that is not signed in",
            "coder open vscode my-workspace --generate-token",
        ),
    ),
    "ping": (
        ("Find out how a workspace is reached, until Ctrl-C", "coder ping my-workspace"),
        ("Three times", "coder ping my-workspace -n 3"),
    ),
    "port-forward": (
        ("Reach port 8080 of the workspace at localhost:8080", "coder port-forward my-workspace --tcp 8080"),
        ("Another port here", "coder port-forward my-workspace --tcp 9000:8080"),
        ("A range, and UDP", "coder port-forward my-workspace --tcp 3000-3010 --udp 5353"),
    ),
    "publickey": (
        ("The key to enter at your Git provider", "coder publickey"),
        ("Make a new one", "coder publickey --reset"),
    ),
    "rename": (("Give a workspace another name", "coder rename old-name new-name"),),
    "restart": (
        ("Stop a workspace and start it again", "coder restart my-workspace"),
        ("With another value, without a question", "coder restart my-workspace --parameter region=us -y"),
    ),
    "schedule extend": (
        ("Two more hours", "coder schedule extend my-workspace 2h"),
        ("Half an hour", "coder schedule extend alice/her-workspace 30m"),
    ),
    "schedule show": (
        ("When your workspaces start and stop", "coder schedule show"),
        ("Everybody's that run", 'coder schedule show --all --search "status:running"'),
    ),
    "schedule start": (
        ("Start on weekdays", "coder schedule start my-workspace 9:00AM Mon-Fri Europe/Berlin"),
        ("Only by hand again", "coder schedule start my-workspace manual"),
    ),
    "schedule stop": (
        ("Stop eight hours after the start", "coder schedule stop my-workspace 8h"),
        ("Let it run until somebody stops it", "coder schedule stop my-workspace manual"),
    ),
    "secret create": (
        ("Keep a value that no list of processes shows", "coder secret create db-password"),
        ("Give it to workspaces as a variable", "coder secret create db-password --env DB_PASSWORD"),
    ),
    "secret delete": (("Delete a secret", "coder secret delete db-password"),),
    "secret disable": (("Keep it, but give it to no workspace", "coder secret disable db-password"),),
    "secret enable": (("Give it to workspaces again", "coder secret enable db-password"),),
    "secret import": (
        ("Take the variables of a file over", "coder secret import .env"),
        ("From another program", "coder secret import --input-format json -"),
    ),
    "secret list": (
        ("Your secrets, without their values", "coder secret list"),
        ("One of them, for a script", "coder secret list db-password -o json"),
    ),
    "secret update": (
        ("Read a new value", "coder secret update db-password"),
        ("Another variable in workspaces", "coder secret update db-password --env DATABASE_PASSWORD"),
    ),
    "sharing add": (
        ("Let somebody use a workspace", "coder sharing add my-workspace --user bob:use"),
        ("Let a group administer it", "coder sharing add my-workspace --group backend:admin"),
    ),
    "sharing remove": (("Take a person's access back", "coder sharing remove my-workspace --user bob"),),
    "sharing status": (("Who may use a workspace", "coder sharing status my-workspace"),),
    "show": (
        ("Agents of a workspace and how to reach them", "coder show my-workspace"),
        ("Applications and metadata as well", "coder show my-workspace --details"),
    ),
    "speedtest": (
        ("Measure how fast a workspace is reached", "coder speedtest my-workspace -t 10s"),
        ("Upwards, over a direct path only", "coder speedtest my-workspace --direct --direction up"),
    ),
    "ssh": (
        ("A shell", "coder ssh my-workspace"),
        ("A command", "coder ssh my-workspace git status"),
        ("One of several agents of another person's workspace", "coder ssh alice/her-workspace.gpu"),
        ("Reach a port of this machine from there", "coder ssh my-workspace -R 8080:localhost:8080"),
    ),
    "start": (
        ("Start a workspace and watch the build", "coder start my-workspace"),
        ("Change a value while starting", "coder start my-workspace --parameter region=us"),
    ),
    "stat": (
        ("What this workspace uses", "coder stat"),
        ("For a template's metadata", "coder stat --output json"),
    ),
    "stat cpu": (
        ("Cores in use", "coder stat cpu"),
        ("Of the machine around the container", "coder stat cpu --host"),
    ),
    "stat disk": (("The disk your home is on", "coder stat disk --path /home"),),
    "stat mem": (("Memory in use, in mebibytes", "coder stat mem --prefix Mi"),),
    "state pull": (
        ("Keep the Terraform state of a workspace", "coder state pull my-workspace state.json"),
        ("That of an earlier build, to look at", "coder state pull my-workspace --build 3"),
    ),
    "state push": (
        ("Put a mended state in the place of the broken one", "coder state push my-workspace state.json"),
        ("Without a build", "coder state push my-workspace state.json --no-build"),
    ),
    "stop": (
        ("Stop a workspace", "coder stop my-workspace -y"),
        ("Of another person, and follow it", "coder stop alice/her-workspace"),
    ),
    "task create": (
        ("Give work to an agent", 'coder task create "Mend the flaky test" --template claude'),
        ("Read it from another program, print the id alone", "coder task create --template claude --stdin --quiet"),
    ),
    "task delete": (("Delete two tasks", "coder task delete first-task second-task -y"),),
    "task list": (
        ("Your tasks", "coder task list"),
        ("Everybody's that work, for a script", "coder task list --all --status active -o json"),
    ),
    "task logs": (("What was said", "coder task logs my-task"),),
    "task pause": (("Stop its workspace, to go on later", "coder task pause my-task"),),
    "task resume": (
        ("Go on", "coder task resume my-task"),
        ("Without waiting for the workspace", "coder task resume my-task --no-wait"),
    ),
    "task send": (
        ("Say something more", 'coder task send my-task "Also run the linter"'),
        ("From another program", "coder task send my-task --stdin"),
    ),
    "task status": (
        ("How far it is", "coder task status my-task"),
        ("Until it is over", "coder task status my-task --watch"),
    ),
    "templates archive": (
        ("Put versions away that failed", "coder templates archive docker"),
        ("And those that nothing uses", "coder templates archive docker --all -y"),
    ),
    "templates create": (
        ("Make a template of this folder", "coder templates create my-template"),
        ("Private, of another folder", "coder templates create my-template -d ./docker --private"),
    ),
    "templates delete": (("Delete a template that no workspace uses", "coder templates delete old-template"),),
    "templates edit": (
        ("Stop workspaces after a day", "coder templates edit docker --default-ttl 24h"),
        (
            "Another name and picture for people",
            'coder templates edit docker --display-name "Docker containers" --icon /icon/docker.png',
        ),
        ("Let nobody begin with it any more", 'coder templates edit docker --deprecated "Use kubernetes instead."'),
    ),
    "templates init": (
        ("Begin with a starter template", "coder templates init --id scratch my-template"),
        ("Choose one from a list", "coder templates init"),
    ),
    "templates list": (
        ("Templates you may use", "coder templates list"),
        ("Names alone, for a script", "coder templates list --column name"),
    ),
    "templates presets list": (
        ("Ready-made sets of values", "coder templates presets list docker"),
        ("Of an earlier version", "coder templates presets list docker --template-version v1"),
    ),
    "templates pull": (
        ("Fetch the files of a template", "coder templates pull docker ./docker"),
        ("A certain version, as an archive on standard output", "coder templates pull docker --version v1 --tar"),
    ),
    "templates push": (
        ("Create or update a template from this folder", "coder templates push my-template"),
        (
            "From another folder, with a variable and a note",
            'coder templates push my-template -d ./docker --variable image=debian -m "newer image"',
        ),
        ("Try a version before everybody gets it", "coder templates push my-template --activate=false"),
    ),
    "templates versions archive": (("Put versions away", "coder templates versions archive docker v1 v2"),),
    "templates versions list": (
        ("The versions of a template", "coder templates versions list docker"),
        ("Also those put away, for a script", "coder templates versions list docker --include-archived -o json"),
    ),
    "templates versions promote": (
        (
            "Let workspaces use a version from now on",
            "coder templates versions promote --template docker --template-version v2",
        ),
    ),
    "templates versions unarchive": (("Take a version out again", "coder templates versions unarchive docker v1"),),
    "tokens create": (
        ("A token for a script, good for 30 days", "coder tokens create --name ci --lifetime 720h"),
        (
            "One that reads workspaces and nothing else",
            "coder tokens create --name reader --scope workspace:read --lifetime 30d",
        ),
    ),
    "tokens list": (
        ("Your tokens", "coder tokens list"),
        ("Everybody's, with those that are over", "coder tokens list --all --include-expired"),
    ),
    "tokens remove": (
        ("Let a token be good no more", "coder tokens remove ci"),
        ("And take it off the list", "coder tokens remove ci --delete"),
    ),
    "tokens view": (("What a token may do, and when it was used", "coder tokens view ci"),),
    "unfavorite": (("Let a workspace stand where its name belongs again", "coder unfavorite my-workspace"),),
    "update": (
        ("Bring a workspace to the template's active version", "coder update my-workspace"),
        (
            "With a new value, and ask for nothing",
            "coder update my-workspace --parameter region=us --use-parameter-defaults",
        ),
    ),
    "version": (
        ("Which version this is", "coder version"),
        ("For a script", "coder version -o json"),
    ),
    "whoami": (
        ("Who you are here, and at which deployment", "coder whoami"),
        ("For a script", "coder whoami -o json"),
    ),
    "wireguard add": (
        ("Let a phone in; its app reads the picture", "coder wireguard add phone"),
        (
            "A laptop, for a week, to one workspace",
            "coder wireguard add laptop --workspace my-workspace --expires 7d --file laptop.conf",
        ),
    ),
    "wireguard list": (("Your devices, and when they were heard", "coder wireguard list"),),
    "wireguard remove": (("Cut a lost phone off", "coder wireguard remove phone"),),
    **OPERATOR_EXAMPLES,
}

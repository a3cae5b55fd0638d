"""Examples that help shows: command -> (what for, line). A test parses each line."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "config-ssh": (
        ("Write hosts for all your workspaces into ~/.ssh/config", "coder config-ssh"),
        ("See what would change, without changing it", "coder config-ssh --dry-run"),
        ("Pass an option on to SSH", 'coder config-ssh -o "ForwardAgent yes"'),
    ),
    "create": (
        ("Make a workspace and answer the template's questions", "coder create my-workspace"),
        ("Choose the template and give values, without questions",
         "coder create my-workspace -t docker --parameter region=eu -y"),
        ("Make one for somebody else", "coder create alice/her-workspace -t docker"),
        ("Take template and values of another workspace", "coder create second --copy-parameters-from first"),
    ),
    "delete": (
        ("Delete a workspace with everything it holds", "coder delete my-workspace"),
        ("Give up one whose resources cannot be destroyed any more", "coder delete my-workspace --orphan"),
    ),
    "dotfiles": (("Bring your settings into this workspace", "coder dotfiles git@github.com:alice/dotfiles.git"),),
    "list": (
        ("List your workspaces", "coder list"),
        ("Those of everybody that run", 'coder list --search "status:running"'),
        ("Names alone, for a script", "coder list --column workspace"),
    ),
    "login": (
        ("Sign in with the browser", "coder login https://coder.example.com"),
        ("Sign in without one", "coder login https://coder.example.com --token abcdefghij-0123456789abcdefghijkl"),
    ),
    "logs": (
        ("What the last build and the agent said", "coder logs my-workspace"),
        ("Go on reading as more is said", "coder logs my-workspace --follow"),
    ),
    "open app": (("Open an application in the browser", "coder open app my-workspace jupyter"),),
    "open vscode": (("Open a folder of a workspace", "coder open vscode my-workspace src/project"),),
    "organizations create": (("Make an organization", "coder organizations create research"),),
    "ping": (
        ("Find out how a workspace is reached, until Ctrl-C", "coder ping my-workspace"),
        ("Three times", "coder ping my-workspace -n 3"),
    ),
    "port-forward": (
        ("Reach port 8080 of the workspace at localhost:8080", "coder port-forward my-workspace --tcp 8080"),
        ("Another port here", "coder port-forward my-workspace --tcp 9000:8080"),
        ("A range, and UDP", "coder port-forward my-workspace --tcp 3000-3010 --udp 5353"),
    ),
    "provisioner keys create": (
        ("A key for provisioners of one environment", "coder provisioner keys create gpu --tag environment=gpu"),
    ),
    "provisioner start": (("Run a provisioner with a key", "coder provisioner start --key ABCDEF --name builder-1"),),
    "rename": (("Give a workspace another name", "coder rename old-name new-name"),),
    "restart": (("Stop a workspace and start it again", "coder restart my-workspace"),),
    "schedule extend": (("Two more hours", "coder schedule extend my-workspace 2h"),),
    "schedule start": (
        ("Start on weekdays", "coder schedule start my-workspace 9:00AM Mon-Fri Europe/Berlin"),
        ("Only by hand again", "coder schedule start my-workspace manual"),
    ),
    "schedule stop": (("Stop eight hours after the start", "coder schedule stop my-workspace 8h"),),
    "secret create": (("Keep a value that no list of processes shows", "coder secret create db-password"),),
    "sharing add": (("Let somebody use a workspace", "coder sharing add my-workspace --user bob:use"),),
    "show": (
        ("Agents of a workspace and how to reach them", "coder show my-workspace"),
        ("Applications and metadata as well", "coder show my-workspace --details"),
    ),
    "speedtest": (("Measure how fast a workspace is reached", "coder speedtest my-workspace -t 10s"),),
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
    "state pull": (("Keep the Terraform state of a workspace", "coder state pull my-workspace state.json"),),
    "stop": (("Stop a workspace", "coder stop my-workspace -y"),),
    "task create": (("Give work to an agent", 'coder task create "Mend the flaky test" --template claude'),),
    "templates edit": (("Stop workspaces after a day", "coder templates edit docker --default-ttl 24h"),),
    "templates init": (("Begin with a starter template", "coder templates init --id scratch my-template"),),
    "templates pull": (("Fetch the files of a template", "coder templates pull docker ./docker"),),
    "templates push": (
        ("Create or update a template from this folder", "coder templates push my-template"),
        ("From another folder, with a variable and a note",
         'coder templates push my-template -d ./docker --variable image=debian -m "newer image"'),
        ("Try a version before everybody gets it", "coder templates push my-template --activate=false"),
    ),
    "tokens create": (("A token for a script, good for 30 days", "coder tokens create --name ci --lifetime 720h"),),
    "update": (("Bring a workspace to the template's active version", "coder update my-workspace"),),
    "users create": (("Add a person", "coder users create -u alice -e alice@example.com"),),
    "users list": (("Everybody, for a script", "coder users list -o json"),),
}  # fmt: skip

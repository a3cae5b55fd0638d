"""Examples that help shows of what people do who run a deployment; the others, and their form: examples.py."""

from __future__ import annotations

OPERATOR_EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "bundle": (
        ("Collect what two templates need", "coder bundle ./docker ./kubernetes"),
        (
            "For machines of another kind, to lie elsewhere",
            "coder bundle ./docker --platform linux_arm64 --installed-at /opt/coder-bundle",
        ),
    ),
    "exp scaletest cleanup": (
        ("Remove what tests left behind", "coder exp scaletest cleanup --cleanup-concurrency 10"),
    ),
    "exp scaletest create-workspaces": (
        (
            "Create fifty workspaces, ten at a time",
            "coder exp scaletest create-workspaces --template docker --count 50 --concurrency 10",
        ),
        (
            "Keep them for the next test, results in a file",
            "coder exp scaletest create-workspaces --template docker --count 50 --no-cleanup --output json:create.json",
        ),
    ),
    "exp scaletest dashboard": (
        (
            "Twenty visitors for five minutes",
            "coder exp scaletest dashboard --target-users 0:20 --concurrency 20 --timeout 5m",
        ),
    ),
    "exp scaletest workspace-traffic": (
        (
            "Type into the test's first ten workspaces",
            "coder exp scaletest workspace-traffic --target-workspaces 0:10 --concurrency 10",
        ),
    ),
    "features list": (
        ("What this deployment can do", "coder features list"),
        ("For a script", "coder features list -o json"),
    ),
    "groups create": (("Make a group", "coder groups create backend --display-name Backend"),),
    "groups delete": (("Delete a group; its members stay", "coder groups delete backend"),),
    "groups edit": (
        ("Take somebody in and somebody out", "coder groups edit backend --add-users alice --rm-users bob@example.com"),
        ("Another name for people", 'coder groups edit backend --display-name "Backend team"'),
    ),
    "groups list": (
        ("The groups of your organization", "coder groups list"),
        ("Names and members of another one's", "coder groups list --org research --column name,members"),
    ),
    "licenses add": (("Give a license; nothing needs one", "coder licenses add --file license.txt"),),
    "licenses delete": (("Delete a license by its number", "coder licenses delete 1"),),
    "licenses list": (("Licenses of the deployment", "coder licenses list"),),
    "notifications pause": (("Send nobody messages for a while", "coder notifications pause"),),
    "notifications resume": (("Send messages again", "coder notifications resume"),),
    "organizations create": (("Make an organization", "coder organizations create research"),),
    "organizations delete": (("Delete an organization", "coder organizations delete research"),),
    "organizations list": (
        ("Organizations you may see", "coder organizations list"),
        ("Ids, for a script", "coder organizations list --column id"),
    ),
    "organizations members add": (("Take a person in", "coder organizations members add alice --org research"),),
    "organizations members edit-roles": (
        (
            "Let somebody look after templates",
            "coder organizations members edit-roles alice organization-template-admin",
        ),
        ("Take all roles away", "coder organizations members edit-roles alice"),
    ),
    "organizations members list": (
        ("Who is in it, and with what roles", "coder organizations members list --org research"),
    ),
    "organizations members remove": (("Take a person out", "coder organizations members remove alice --org research"),),
    "organizations roles create": (("Make a role of a file's JSON", "coder organizations roles create --stdin"),),
    "organizations roles show": (
        ("All roles", "coder organizations roles show"),
        ("One, as JSON to change and give back", "coder organizations roles show release-manager -o json"),
    ),
    "organizations roles update": (
        ("Change a role, given as JSON", "coder organizations roles update --stdin"),
        ("See first what it would be", "coder organizations roles update --stdin --dry-run"),
    ),
    "organizations settings set group-sync": (
        (
            "Change how groups follow the identity provider; reads what show printed",
            "coder organizations settings set group-sync",
        ),
    ),
    "organizations settings set organization-sync": (
        (
            "Change how people come into organizations; reads what show printed",
            "coder organizations settings set organization-sync",
        ),
    ),
    "organizations settings set role-sync": (
        (
            "Change how roles follow the identity provider; reads what show printed",
            "coder organizations settings set role-sync",
        ),
    ),
    "organizations settings set workspace-sharing": (
        (
            "Change how workspaces may be shared; reads what show printed",
            "coder organizations settings set workspace-sharing",
        ),
    ),
    "organizations settings show group-sync": (
        ("How groups follow the identity provider", "coder organizations settings show group-sync"),
    ),
    "organizations settings show organization-sync": (
        ("How people come into organizations", "coder organizations settings show organization-sync"),
    ),
    "organizations settings show role-sync": (
        ("How roles follow the identity provider", "coder organizations settings show role-sync"),
    ),
    "organizations settings show workspace-sharing": (
        ("How workspaces may be shared", "coder organizations settings show workspace-sharing"),
    ),
    "organizations show": (
        ("The organization you would work in", "coder organizations show selected"),
        ("Those you are in", "coder organizations show me"),
        ("The id of one, for a script", "coder organizations show research --only-id"),
    ),
    "prebuilds pause": (("Make no workspaces ahead for a while", "coder prebuilds pause"),),
    "prebuilds resume": (("Make workspaces ahead again", "coder prebuilds resume"),),
    "provisioner jobs cancel": (
        ("Cancel a job that waits or runs", "coder provisioner jobs cancel 6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"),
    ),
    "provisioner jobs list": (
        ("The last jobs", "coder provisioner jobs list"),
        ("Those that wait or run", "coder provisioner jobs list --status pending,running"),
        ("Your own that failed", "coder provisioner jobs list --initiator me --status failed"),
    ),
    "provisioner jobs why": (
        ("Why a job waits, and for whom", "coder provisioner jobs why 6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"),
    ),
    "provisioner keys create": (
        ("A key for provisioners of one environment", "coder provisioner keys create gpu --tag environment=gpu"),
        ("A key for any job", "coder provisioner keys create office"),
    ),
    "provisioner keys delete": (("Let nobody in with a key any more", "coder provisioner keys delete gpu"),),
    "provisioner keys list": (("The keys there are, with their tags", "coder provisioner keys list"),),
    "provisioner list": (
        ("Provisioners that are connected", "coder provisioner list"),
        ("Also those that are gone, for a script", "coder provisioner list --show-offline -o json"),
        ("Load and liveness of their machines", "coder provisioner list --health"),
    ),
    "provisioner start": (
        ("Run a provisioner with a key", "coder provisioner start --key ABCDEF --name builder-1"),
        (
            "For jobs of one environment, with the shared secret",
            "coder provisioner start --psk ABCDEF --tag environment=gpu",
        ),
    ),
    "reset-password": (
        ("A new password, from the server's machine", "coder reset-password alice"),
        (
            "With a database elsewhere",
            "coder reset-password alice --postgres-url postgres://coder@db.example.com/coder",
        ),
    ),
    "server": (
        ("Try it on this machine", "coder server"),
        (
            "For a team, behind a proxy, with a database of its own",
            "coder server --access-url https://coder.example.com --http-address 127.0.0.1:3000 "
            "--postgres-url postgres://coder@db.example.com/coder",
        ),
        (
            "With certificates",
            "coder server --access-url https://coder.example.com --tls-enable --tls-address 0.0.0.0:443 "
            "--tls-cert-file cert.pem --tls-key-file key.pem",
        ),
        (
            "Write the settings down to keep them in a file",
            "coder server --access-url https://coder.example.com --write-config",
        ),
    ),
    "server backup": (
        ("Keep the database of this machine", "coder server backup"),
        (
            "Another one, to a file you name",
            "coder server backup --postgres-url postgres://coder@db.example.com/coder --output monday.backup",
        ),
    ),
    "server create-admin-user": (
        ("Get in again when no owner can", "coder server create-admin-user --username root --email root@example.com"),
    ),
    "server dbcrypt decrypt": (
        (
            "Store everything in the open again",
            "coder server dbcrypt decrypt --keys MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        ),
    ),
    "server dbcrypt delete": (("Delete what is sealed when its keys are lost", "coder server dbcrypt delete -y"),),
    "server dbcrypt rotate": (
        (
            "Seal everything with a new key",
            "coder server dbcrypt rotate --new-key MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        ),
    ),
    "server fix-oidc-links": (
        (
            "How many accounts belong to a former provider",
            "coder server fix-oidc-links --issuer-url https://login.example.com --dry-run",
        ),
    ),
    "server postgres-builtin-serve": (
        ("Look into the built-in database while the server is stopped", "coder server postgres-builtin-serve"),
    ),
    "server postgres-builtin-url": (
        ("How to reach the built-in database with psql", "coder server postgres-builtin-url"),
        ("Its URL alone, for a program", "coder server postgres-builtin-url --raw-url"),
    ),
    "server regenerate-vapid-keypair": (
        ("New keys for browser notifications", "coder server regenerate-vapid-keypair -y"),
    ),
    "server restore": (("Put a backup in the place of the database", "coder server restore monday.backup"),),
    "support bundle": (
        ("What a helper needs, of one workspace", "coder support bundle my-workspace -O support.zip"),
        ("Of the deployment alone, with profiles", "coder support bundle --pprof -y"),
    ),
    "terraform-provider": (
        ("Write a mirror that terraform installs the provider from", "coder terraform-provider --mirror ./mirror"),
    ),
    "users activate": (("Let somebody in again", "coder users activate bob"),),
    "users create": (
        ("Add a person", "coder users create -u alice -e alice@example.com"),
        ("An account for a program", "coder users create -u deploy-bot --service-account"),
    ),
    "users delete": (("Delete an account that has no workspaces", "coder users delete bob"),),
    "users edit-roles": (("Let somebody look after templates", "coder users edit-roles alice --roles template-admin"),),
    "users list": (
        ("Everybody, for a script", "coder users list -o json"),
        ("Names and addresses", "coder users list --column username,email"),
    ),
    "users oidc-claims": (("What the identity provider says of you", "coder users oidc-claims"),),
    "users show": (
        ("Yourself", "coder users show me"),
        ("Somebody, for a script", "coder users show alice -o json"),
    ),
    "users suspend": (("Let somebody in no more, and keep the workspaces", "coder users suspend bob"),),
    "workspace-proxy create": (
        (
            "Announce a proxy, and keep its token",
            "coder workspace-proxy create --name eu --display-name Europe --icon /emojis/1f30d.png",
        ),
    ),
    "workspace-proxy delete": (("Give a proxy up", "coder workspace-proxy delete eu"),),
    "workspace-proxy edit": (
        ("Another name for people", 'coder workspace-proxy edit eu --display-name "Europe, west"'),
    ),
    "workspace-proxy ls": (("Proxies, and whether they are well", "coder workspace-proxy ls"),),
    "workspace-proxy regenerate-token": (
        ("A new token when the old one got out", "coder workspace-proxy regenerate-token eu"),
    ),
    "workspace-proxy server": (
        (
            "Run a proxy near its users",
            "coder workspace-proxy server --primary-access-url https://coder.example.com --access-url "
            "https://eu.coder.example.com --proxy-session-token ABCDEF",
        ),
    ),
}

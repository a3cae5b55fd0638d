"""Examples in the help of commands for operators of a deployment, in the form of examples.py."""

from __future__ import annotations

OPERATOR_EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "bundle": (
        ("Collect what two templates require", "coder bundle ./docker ./kubernetes"),
        (
            "Collect for another platform and another path",
            "coder bundle ./docker --platform linux_arm64 --installed-at /opt/coder-bundle",
        ),
    ),
    "exp scaletest agents": (
        (
            "Keep an agent for each token of a file connected for half an hour",
            "coder exp scaletest agents --token-file tokens.txt --duration 30m --output json",
        ),
    ),
    "exp scaletest cleanup": (
        ("Delete the workspaces and users of scale tests", "coder exp scaletest cleanup --cleanup-concurrency 10"),
    ),
    "exp scaletest create-workspaces": (
        (
            "Create fifty workspaces, ten at a time",
            "coder exp scaletest create-workspaces --template docker --count 50 --concurrency 10",
        ),
        (
            "Keep the workspaces for the next test and write results to a file",
            "coder exp scaletest create-workspaces --template docker --count 50 --no-cleanup --output json:create.json",
        ),
    ),
    "exp scaletest dashboard": (
        (
            "Simulate 20 visitors for five minutes",
            "coder exp scaletest dashboard --target-users 0:20 --concurrency 20 --timeout 5m",
        ),
    ),
    "exp scaletest workspace-traffic": (
        (
            "Send traffic to the first ten workspaces of the test",
            "coder exp scaletest workspace-traffic --target-workspaces 0:10 --concurrency 10",
        ),
    ),
    "features list": (
        ("List the features of the deployment", "coder features list"),
        ("Print JSON for a script", "coder features list -o json"),
    ),
    "groups create": (("Create a group", "coder groups create backend --display-name Backend"),),
    "groups delete": (("Delete a group", "coder groups delete backend"),),
    "groups edit": (
        ("Add one user and remove another", "coder groups edit backend --add-users alice --rm-users bob@example.com"),
        ("Change the display name", 'coder groups edit backend --display-name "Backend team"'),
    ),
    "groups list": (
        ("List the groups of your organization", "coder groups list"),
        ("List names and members in another organization", "coder groups list --org research --column name,members"),
    ),
    "licenses add": (("Add a license", "coder licenses add --file license.txt"),),
    "licenses delete": (("Delete a license by its id", "coder licenses delete 1"),),
    "licenses list": (("List the licenses of the deployment", "coder licenses list"),),
    "notifications pause": (("Pause all notifications", "coder notifications pause"),),
    "notifications resume": (("Resume notifications", "coder notifications resume"),),
    "organizations create": (("Create an organization", "coder organizations create research"),),
    "organizations delete": (("Delete an organization", "coder organizations delete research"),),
    "organizations list": (
        ("List the organizations you can see", "coder organizations list"),
        ("Print only ids, for a script", "coder organizations list --column id"),
    ),
    "organizations members add": (("Add a member", "coder organizations members add alice --org research"),),
    "organizations members edit-roles": (
        (
            "Make a member template administrator",
            "coder organizations members edit-roles alice organization-template-admin",
        ),
        ("Remove all roles", "coder organizations members edit-roles alice"),
    ),
    "organizations members list": (
        ("List the members and their roles", "coder organizations members list --org research"),
    ),
    "organizations members remove": (("Remove a member", "coder organizations members remove alice --org research"),),
    "organizations roles create": (
        ("Create a role from JSON on standard input", "coder organizations roles create --stdin"),
    ),
    "organizations roles show": (
        ("List all roles", "coder organizations roles show"),
        ("Print one role as JSON, to edit and update", "coder organizations roles show release-manager -o json"),
    ),
    "organizations roles update": (
        ("Update a role from JSON on standard input", "coder organizations roles update --stdin"),
        ("Show the result without saving it", "coder organizations roles update --stdin --dry-run"),
    ),
    "organizations settings set group-sync": (
        (
            "Change group sync; reads the JSON that show prints",
            "coder organizations settings set group-sync",
        ),
    ),
    "organizations settings set organization-sync": (
        (
            "Change organization sync; reads the JSON that show prints",
            "coder organizations settings set organization-sync",
        ),
    ),
    "organizations settings set role-sync": (
        (
            "Change role sync; reads the JSON that show prints",
            "coder organizations settings set role-sync",
        ),
    ),
    "organizations settings set workspace-sharing": (
        (
            "Change workspace sharing; reads the JSON that show prints",
            "coder organizations settings set workspace-sharing",
        ),
    ),
    "organizations settings show group-sync": (
        ("Show how identity provider claims map to groups", "coder organizations settings show group-sync"),
    ),
    "organizations settings show organization-sync": (
        ("Show how identity provider claims map to memberships", "coder organizations settings show organization-sync"),
    ),
    "organizations settings show role-sync": (
        ("Show how identity provider claims map to roles", "coder organizations settings show role-sync"),
    ),
    "organizations settings show workspace-sharing": (
        ("Show whether workspaces can be shared", "coder organizations settings show workspace-sharing"),
    ),
    "organizations show": (
        ("Show the organization that commands use", "coder organizations show selected"),
        ("Show the organizations you belong to", "coder organizations show me"),
        ("Print only an organization's id, for a script", "coder organizations show research --only-id"),
    ),
    "prebuilds pause": (("Pause prebuilt workspaces", "coder prebuilds pause"),),
    "prebuilds resume": (("Resume prebuilt workspaces", "coder prebuilds resume"),),
    "provisioner jobs cancel": (
        ("Cancel a pending or running job", "coder provisioner jobs cancel 6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"),
    ),
    "provisioner jobs list": (
        ("List the latest jobs", "coder provisioner jobs list"),
        ("List pending and running jobs", "coder provisioner jobs list --status pending,running"),
        ("List your failed jobs", "coder provisioner jobs list --initiator me --status failed"),
    ),
    "provisioner jobs why": (
        (
            "Explain which provisioners a job waits for",
            "coder provisioner jobs why 6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11",
        ),
    ),
    "provisioner keys create": (
        ("Create a key for provisioners of one environment", "coder provisioner keys create gpu --tag environment=gpu"),
        ("Create a key without tags", "coder provisioner keys create office"),
    ),
    "provisioner keys delete": (("Delete a provisioner key", "coder provisioner keys delete gpu"),),
    "provisioner keys list": (("List the keys and their tags", "coder provisioner keys list"),),
    "provisioner list": (
        ("List the connected provisioners", "coder provisioner list"),
        ("Include offline provisioners, as JSON", "coder provisioner list --show-offline -o json"),
        ("Show load and liveness of their machines", "coder provisioner list --health"),
    ),
    "provisioner start": (
        ("Run a provisioner with a provisioner key", "coder provisioner start --key ABCDEF --name builder-1"),
        (
            "Run jobs of one environment, with the shared secret",
            "coder provisioner start --psk ABCDEF --tag environment=gpu",
        ),
    ),
    "provisionerd start": (("Run a provisioner with the shared secret", "coder provisionerd start --psk ABCDEF"),),
    "reset-password": (
        ("Reset a password on the server's machine", "coder reset-password alice"),
        (
            "Reset a password in an external database",
            "coder reset-password alice --postgres-url postgres://coder@db.example.com/coder",
        ),
    ),
    "server": (
        ("Run a server on this machine with a built-in database", "coder server"),
        (
            "Run behind a reverse proxy, with an external database",
            "coder server --access-url https://coder.example.com --http-address 127.0.0.1:3000 "
            "--postgres-url postgres://coder@db.example.com/coder",
        ),
        (
            "Serve HTTPS",
            "coder server --access-url https://coder.example.com --tls-enable --tls-address 0.0.0.0:443 "
            "--tls-cert-file cert.pem --tls-key-file key.pem",
        ),
        (
            "Print the settings as YAML, for a configuration file",
            "coder server --access-url https://coder.example.com --write-config",
        ),
    ),
    "server backup": (
        ("Back up the built-in database", "coder server backup"),
        (
            "Back up an external database to a file",
            "coder server backup --postgres-url postgres://coder@db.example.com/coder --output monday.backup",
        ),
    ),
    "server create-admin-user": (
        (
            "Create an owner when no owner can log in",
            "coder server create-admin-user --username root --email root@example.com",
        ),
    ),
    "server dbcrypt decrypt": (
        (
            "Decrypt the database",
            "coder server dbcrypt decrypt --keys MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        ),
    ),
    "server dbcrypt delete": (("Delete encrypted values whose keys are lost", "coder server dbcrypt delete -y"),),
    "server dbcrypt rotate": (
        (
            "Encrypt the database with a new key",
            "coder server dbcrypt rotate --new-key MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        ),
    ),
    "server fix-oidc-links": (
        (
            "Count the accounts linked to a former provider",
            "coder server fix-oidc-links --issuer-url https://login.example.com --dry-run",
        ),
    ),
    "server postgres-builtin-serve": (
        ("Run the built-in database while the server is stopped", "coder server postgres-builtin-serve"),
    ),
    "server postgres-builtin-url": (
        ("Print the psql command for the built-in database", "coder server postgres-builtin-url"),
        ("Print only its URL, for a program", "coder server postgres-builtin-url --raw-url"),
    ),
    "server regenerate-vapid-keypair": (
        ("Replace the keys of browser notifications", "coder server regenerate-vapid-keypair -y"),
    ),
    "server restore": (("Restore a backup over the database", "coder server restore monday.backup"),),
    "support bundle": (
        ("Collect support data for one workspace", "coder support bundle my-workspace -O support.zip"),
        ("Collect support data for the deployment, with profiles", "coder support bundle --pprof -y"),
    ),
    "terraform-provider": (
        ("Write a filesystem mirror of the provider", "coder terraform-provider --mirror ./mirror"),
    ),
    "users activate": (("Reactivate a suspended user", "coder users activate bob"),),
    "users create": (
        ("Create a user", "coder users create -u alice -e alice@example.com"),
        ("Create a service account", "coder users create -u deploy-bot --service-account"),
    ),
    "users delete": (("Delete a user without workspaces", "coder users delete bob"),),
    "users edit-roles": (
        ("Make a user template administrator", "coder users edit-roles alice --roles template-admin"),
    ),
    "users list": (
        ("List all users as JSON", "coder users list -o json"),
        ("List user names and e-mail addresses", "coder users list --column username,email"),
    ),
    "users oidc-claims": (("Show your claims from the identity provider", "coder users oidc-claims"),),
    "users show": (
        ("Show your own account", "coder users show me"),
        ("Print a user as JSON", "coder users show alice -o json"),
    ),
    "users suspend": (("Suspend a user and keep the workspaces", "coder users suspend bob"),),
    "workspace-proxy create": (
        (
            "Create a proxy and print its token",
            "coder workspace-proxy create --name eu --display-name Europe --icon /emojis/1f30d.png",
        ),
    ),
    "workspace-proxy delete": (("Delete a proxy", "coder workspace-proxy delete eu"),),
    "workspace-proxy edit": (
        ("Change the display name", 'coder workspace-proxy edit eu --display-name "Europe, west"'),
    ),
    "workspace-proxy ls": (("List the proxies and their health", "coder workspace-proxy ls"),),
    "workspace-proxy regenerate-token": (("Replace a leaked token", "coder workspace-proxy regenerate-token eu"),),
    "workspace-proxy server": (
        (
            "Run a workspace proxy",
            "coder workspace-proxy server --primary-access-url https://coder.example.com --access-url "
            "https://eu.coder.example.com --proxy-session-token ABCDEF",
        ),
    ),
}

// An OpenID Connect provider with two people. Usage: node provider.mjs REDIRECT_URI…; prints its issuer, ends with stdin.
// The client is `coder` with the secret `a secret of ours`, sent as HTTP Basic; codes need PKCE as the client's
// defaults have it; passwords are not looked at: the development login form takes any.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const people = {
  "subject-1": { email: "ada@example.com", email_verified: true, preferred_username: "ada", name: "Ada L.", groups: ["makers"] },
  "subject-2": { email: "bob@example.com", email_verified: false, preferred_username: "bob", groups: [] },
};

let answer;
const server = createServer((request, response) => answer(request, response));
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "coder",
      client_secret: "a secret of ours",
      redirect_uris: process.argv.slice(2),
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
    }],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "preferred_username"], groups: ["groups"] },
    scopes: ["openid", "email", "profile", "groups", "offline_access"],
    conformIdTokenClaims: true,
    findAccount: (_context, id) =>
      people[id] && { accountId: id, claims: async () => ({ sub: id, ...people[id] }) },
    features: { devInteractions: { enabled: true }, revocation: { enabled: true } },
    pkce: { required: () => true, methods: ["S256"] },
    cookies: { keys: ["a key for cookies"] },
  });
  answer = provider.callback();
  console.log(issuer);
});
process.stdin.on("end", () => process.exit(0)).resume();

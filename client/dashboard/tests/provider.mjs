// A real OpenID Connect provider (npm's oidc-provider) for the sign-in test, as a process of its own;
// tests/e2e/oidc.py starts it. It prints its port, and serves once its input has the redirect URI:
// until then a request gets no answer, as of a provider that hangs. Each login and password is good.
import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { createInterface } from "node:readline";
import { Provider } from "oidc-provider";

const { certificate, client, secret } = JSON.parse(process.env.NPUC_PROVIDER);
const server = createServer({ cert: readFileSync(`${certificate}.pem`), key: readFileSync(`${certificate}.key`) });
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const { port } = server.address();
console.log(port);
// Another site than npucd's 127.0.0.1, as browsers see it.
const issuer = `https://localhost:${port}`;
const newKey = (...kind) => generateKeyPairSync(...kind).privateKey.export({ format: "jwk" });

createInterface({ input: process.stdin }).once("line", (redirect) => {
  const provider = new Provider(issuer, {
    clients: [{ client_id: client, client_secret: secret, redirect_uris: [redirect], id_token_signed_response_alg: "ES256" }],
    // The first is of the kind that signs: of another client's tokens, and of this one's.
    jwks: { keys: [{ ...newKey("rsa", { modulusLength: 2048 }), kid: "rsa", use: "sig" }, { ...newKey("ec", { namedCurve: "P-256" }), kid: "ec", use: "sig" }] },
    enabledJWA: { idTokenSigningAlgValues: ["RS256", "ES256"] },
    claims: { openid: ["sub"], email: ["email", "email_verified"] },
    cookies: { keys: ["of the test"] },
    pkce: { required: () => true },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@farm.example`, email_verified: id !== "unverified" }) }),
  });
  server.on("request", provider.callback());
});

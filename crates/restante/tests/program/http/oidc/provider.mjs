// An identity provider for tests, which is strict about the standards. It prints its URL, then reads the URL of the server under test
// from standard input, and ends with it. Users log in with any name. The name is also that of their group.

import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

/** The clients: their ids, and how their ID tokens are signed. */
const CLIENTS = { restante: 'RS256', pss: 'PS256', p256: 'ES256', ed25519: 'EdDSA', public: 'RS256' };

const server = createServer();
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
const lines = createInterface({ input: process.stdin });
lines.once('line', (url) => start(`http://127.0.0.1:${server.address().port}`, url));
lines.once('close', () => process.exit());

/** Starts the provider for a server at this URL. */
function start(issuer, url) {
  const key = (type, options, more) => ({ ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), ...more });
  const provider = new Provider(issuer, {
    clients: Object.entries(CLIENTS).map(([id, algorithm]) => ({
      client_id: id,
      // It has characters that must be encoded.
      ...(id === 'public' ? { token_endpoint_auth_method: 'none' } : { client_secret: 'a secret: 100%+' }),
      id_token_signed_response_alg: algorithm,
      redirect_uris: [`${url}/login/oidc/callback`],
      post_logout_redirect_uris: [`${url}/login`],
    })),
    enabledJWA: { idTokenSigningAlgValues: [...new Set(Object.values(CLIENTS))] },
    jwks: {
      keys: [
        key('rsa', { modulusLength: 2048 }, { use: 'sig', kid: 'rsa' }),
        key('ec', { namedCurve: 'P-256' }, { use: 'sig', kid: 'p256' }),
        key('ed25519', {}, { use: 'sig', kid: 'ed25519' }),
      ],
    },
    pkce: { required: () => true },
    cookies: { keys: ['a key that signs cookies'] },
    // The claims of scopes are not in the ID token, but only at the userinfo endpoint.
    conformIdTokenClaims: true,
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'], email: ['email', 'email_verified'] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id, groups: [id], email: `${id}@acme.test`, email_verified: true }),
    }),
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 60, IdToken: 60, Interaction: 60, Session: 60 },
    async loadExistingGrant(ctx) {
      const { client, session, params } = ctx.oidc;
      const grant = new ctx.oidc.provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope(params.scope);
      await grant.save();
      return grant;
    },
  });
  // The page on which users enter their names. The name "nobody" cancels the login.
  provider.use(async (ctx, next) => {
    if (!ctx.path.startsWith('/interaction/')) return next();
    const { login } = ctx.query;
    if (login === undefined) {
      ctx.body = '<!doctype html><title>Provider</title><form><input name="login"><button>Log in</button></form>';
      return;
    }
    const result = login === 'nobody' ? { error: 'access_denied' } : { login: { accountId: login } };
    await provider.interactionFinished(ctx.req, ctx.res, result);
    ctx.respond = false;
  });
  provider.on('server_error', (_, error) => console.error(error));
  server.on('request', provider.callback());
  console.log('ready');
}

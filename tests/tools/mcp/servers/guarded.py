"""A server over HTTP that one must sign in to; it prints its port.

Whoever asks to sign in is let in at once.
"""

from __future__ import annotations

import socket
import time

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

LIFETIME = 3600


class Everybody(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Lets everybody in, and counts how often."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.access: dict[str, AccessToken] = {}
        self.signed_in = self.renewed = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if client_id == "by-hand":
            return OAuthClientInformationFull(
                client_id=client_id,
                client_secret="secret-of-the-client",
                redirect_uris=[AnyUrl("http://127.0.0.1:9/back")],
                token_endpoint_auth_method="client_secret_post",
            )
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        self.signed_in += 1
        code = AuthorizationCode(
            code=f"code-of-sign-in-{self.signed_in}",
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code) -> OAuthToken:
        return self._token(client.client_id, code.scopes)

    async def load_refresh_token(self, client, token):
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client, token, scopes) -> OAuthToken:
        self.renewed += 1
        return self._token(client.client_id, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.access.get(token)
        return found if found and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token) -> None:
        pass

    def _token(self, client_id: str, scopes: list[str]) -> OAuthToken:
        number = len(self.access) + 1
        access, refresh = f"access-token-number-{number}", f"refresh-token-number-{number}"
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=int(time.time()) + LIFETIME
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=LIFETIME)


async def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    port = listener.getsockname()[1]
    everybody = Everybody()
    server = MCPServer(
        "Guarded",
        log_level="ERROR",
        auth_server_provider=everybody,
        auth=AuthSettings.model_validate(
            {
                "issuer_url": f"http://127.0.0.1:{port}",
                "resource_server_url": f"http://127.0.0.1:{port}/mcp",
                "validate_token_resource": False,
                "client_registration_options": ClientRegistrationOptions(enabled=True),
            }
        ),
    )

    @server.tool()
    def who() -> str:
        """Tell which token was used, and how often somebody signed in and tokens were renewed."""
        token = get_access_token()
        return f"{token and token.token} {everybody.signed_in} {everybody.renewed}"

    print(port, flush=True)
    app = server.streamable_http_app(host="127.0.0.1")
    config = uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    anyio.run(main)

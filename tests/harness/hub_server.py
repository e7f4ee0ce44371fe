"""A stand-in for the hub that the real client talks to: repositories in memory, one branch, files sent inline."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    repos: dict[str, dict[str, bytes]]

    def log_message(self, *_):
        pass

    def _send(self, status, body=b"", **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        headers = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = self.path.split("?")[0].strip("/").split("/")
        if self.path.startswith("/api/repos/create"):
            wanted = json.loads(body)
            name = "/".join(filter(None, (wanted.get("organization") or "me", wanted["name"])))
            self.repos.setdefault(name, {})
            return self._send(200, {"url": f"{self._base}/{name}", "id": name})
        if self.path.startswith("/api/validate-yaml"):
            return self._send(200, {"errors": [], "warnings": []})
        repo = "/".join(parts[2:4])
        if parts[4] == "preupload":
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in json.loads(body)["files"]
            ]
            return self._send(200, {"files": files})
        if parts[4] == "commit":
            for line in body.splitlines():
                record = json.loads(line)
                if record["key"] == "file":
                    self.repos[repo][record["value"]["path"]] = base64.b64decode(record["value"]["content"])
            sha = self._sha(repo)
            return self._send(
                200, {"success": True, "commitOid": sha, "commitUrl": f"{self._base}/{repo}/commit/{sha}"}
            )
        return self._send(404, {"error": self.path})

    def do_GET(self):
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts[0] == "api" and "/".join(parts[2:4]) in self.repos:
            repo = "/".join(parts[2:4])
            if "tree" in parts:
                files = self.repos[repo].items()
                rows = [
                    {"type": "file", "path": p, "size": len(d), "oid": hashlib.sha1(d).hexdigest()} for p, d in files
                ]
                return self._send(200, rows)
            siblings = [{"rfilename": name} for name in self.repos[repo]]
            about = {"id": repo, "modelId": repo, "sha": self._sha(repo), "siblings": siblings, "private": False}
            return self._send(200, {**about, "tags": [], "downloads": 0, "likes": 0})
        repo = "/".join(parts[:2])
        if repo in self.repos and len(parts) > 4 and parts[2] == "resolve" and "/".join(parts[4:]) in self.repos[repo]:
            data = self.repos[repo]["/".join(parts[4:])]
            etag = hashlib.sha1(data).hexdigest()
            return self._send(200, data, ETag=f'"{etag}"', X_Repo_Commit=self._sha(repo))
        return self._send(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")

    def do_HEAD(self):
        self.do_GET()

    def _sha(self, repo):
        return hashlib.sha1(b"".join(self.repos[repo].values())).hexdigest()

    @property
    def _base(self):
        return f"http://{self.headers['Host']}"


@contextmanager
def stand_in():
    """The address of a running stand-in, and its repositories by name."""
    repos: dict[str, dict[str, bytes]] = {}
    handler = type("Handler", (_Handler,), {"repos": repos})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", repos
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

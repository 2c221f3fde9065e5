/** What GET / shows until the dashboard is here. It is constant: nothing a user wrote is ever part of it. */
export const LANDING_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>curfew</title>
</head>
<body>
<main>
<h1>curfew</h1>
<p>This is a job server that speaks Open Job Spec over HTTP. It has no dashboard yet.</p>
<ul>
<li><a href="/health">Health</a> and <a href="/ready">readiness</a></li>
<li><a href="/metrics">Metrics</a> for Prometheus</li>
<li><a href="/ojs/manifest">What this server can do</a></li>
<li><a href="/openapi.json">The interface as OpenAPI</a></li>
</ul>
</main>
</body>
</html>
`;

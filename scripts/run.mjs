// What `npm start`, `npm test` and the other root scripts run: makes sure that everything they need is installed,
// then hands over to the real entry under the project's own Node.js. This file and its imports are plain JavaScript
// without dependencies, since they run on whatever Node.js (20 or later) is there, before any package is.

if (Number(process.versions.node.split('.')[0]) < 20) {
  process.stderr.write(`millrace: Node.js 20 or later is needed, found ${process.versions.node}\n`);
  process.exit(1);
}

const { main } = await import('./setup/main.mjs');
await main(process.argv.slice(2));

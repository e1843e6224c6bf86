# One target for each service: docker build --target api --tag millrace/api:0.1.0 .
FROM node:24.21.0-bookworm-slim AS base
ENV NODE_ENV=production
WORKDIR /app

# Of all workspaces: the lock file speaks of all. Sources come later, so that a change there installs nothing anew.
FROM base AS manifests
COPY package.json package-lock.json ./
COPY bench/package.json bench/
COPY e2e/package.json e2e/
COPY embedded/package.json embedded/
COPY load-tests/package.json load-tests/
COPY packages/bus/package.json packages/bus/
COPY packages/client/package.json packages/client/
COPY packages/contract/package.json packages/contract/
COPY packages/domain/package.json packages/domain/
COPY packages/objects/package.json packages/objects/
COPY packages/platform/package.json packages/platform/
COPY packages/player/package.json packages/player/
COPY packages/store/package.json packages/store/
COPY packages/testing/package.json packages/testing/
COPY services/api/package.json services/api/
COPY services/cdn/package.json services/cdn/
COPY services/encoder/package.json services/encoder/
COPY services/reconciler/package.json services/reconciler/
COPY services/webhooks/package.json services/webhooks/
ENV npm_config_cache=/var/cache/npm npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false

FROM manifests AS api-modules
RUN --mount=type=cache,target=/var/cache/npm npm ci --omit=dev --ignore-scripts --workspace services/api

FROM manifests AS cdn-modules
RUN --mount=type=cache,target=/var/cache/npm npm ci --omit=dev --ignore-scripts --workspace services/cdn

FROM manifests AS encoder-modules
RUN --mount=type=cache,target=/var/cache/npm npm ci --omit=dev --ignore-scripts --workspace services/encoder

FROM manifests AS webhooks-modules
RUN --mount=type=cache,target=/var/cache/npm npm ci --omit=dev --ignore-scripts --workspace services/webhooks

# With the command line, which is in the workspace `embedded`; its PostgreSQL is an optional package.
FROM manifests AS reconciler-modules
RUN --mount=type=cache,target=/var/cache/npm npm ci --omit=dev --omit=optional --ignore-scripts --workspace services/reconciler --workspace embedded

# What every image runs on: npm is for building, and nobody is root.
FROM base AS runtime
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn* /usr/local/bin/yarn* \
 && groupadd --gid 10001 millrace \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin millrace
COPY package.json ./
COPY packages packages

FROM runtime AS api
COPY --from=api-modules /app/node_modules node_modules
COPY services/api services/api
USER 10001:10001
EXPOSE 8080 8081 9090
ENTRYPOINT ["node", "services/api/src/main.ts"]

FROM runtime AS cdn
COPY --from=cdn-modules /app/node_modules node_modules
COPY services/cdn services/cdn
# The player's files, which would be built at every start otherwise.
ENV MILLRACE_CACHE=/app/cache
RUN node --input-type=module --eval "await (await import('@millrace/player')).loadPlayer('/app/cache')"
USER 10001:10001
EXPOSE 8080 9090
ENTRYPOINT ["node", "services/cdn/src/main.ts"]

FROM runtime AS encoder
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ffmpeg \
 && rm -rf /var/lib/apt/lists/*
COPY --from=encoder-modules /app/node_modules node_modules
COPY services/encoder services/encoder
USER 10001:10001
EXPOSE 9090
ENTRYPOINT ["node", "services/encoder/src/main.ts"]

FROM runtime AS webhooks
COPY --from=webhooks-modules /app/node_modules node_modules
COPY services/webhooks services/webhooks
USER 10001:10001
EXPOSE 9090
ENTRYPOINT ["node", "services/webhooks/src/main.ts"]

FROM runtime AS reconciler
COPY --from=reconciler-modules /app/node_modules node_modules
COPY services services
COPY embedded embedded
COPY --chmod=0755 embedded/src/cli/millrace.sh /usr/local/bin/millrace
USER 10001:10001
EXPOSE 9090
ENTRYPOINT ["node", "services/reconciler/src/main.ts"]

/** A listener with TLS (PEM texts, the key as PKCS#8) that asks for this user's password by SASL/PLAIN. */
export interface SecureListener {
  cert: string;
  key: string;
  username: string;
  password: string;
}

interface BrokerSetup {
  host: string;
  ports: { client: number; controller: number; secure: number };
  /** Folder of the data. */
  logs: string;
  secure?: SecureListener;
  properties?: Readonly<Record<string, string>>;
}

/** The text of `server.properties` for a broker that is its own controller and has no peers. */
export function brokerProperties({ host, ports, logs, secure, properties = {} }: BrokerSetup): string {
  const listeners = [`PLAINTEXT://${host}:${ports.client}`, `CONTROLLER://${host}:${ports.controller}`];
  if (secure) listeners.push(`SECURE://${host}:${ports.secure}`);
  const all: Record<string, string> = {
    'process.roles': 'broker,controller',
    'node.id': '1',
    'controller.quorum.voters': `1@${host}:${ports.controller}`,
    'controller.listener.names': 'CONTROLLER',
    listeners: listeners.join(','),
    'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL',
    'inter.broker.listener.name': 'PLAINTEXT',
    'log.dirs': logs,
    'auto.create.topics.enable': 'false',
    // There is nobody to copy to.
    'offsets.topic.replication.factor': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'share.coordinator.state.topic.replication.factor': '1',
    'share.coordinator.state.topic.min.isr': '1',
    'offsets.topic.num.partitions': '4',
    'transaction.state.log.num.partitions': '1',
    'share.coordinator.state.topic.num.partitions': '1',
    // Tests neither wait for members that may come nor, for long, for members that are gone.
    'group.initial.rebalance.delay.ms': '0',
    'group.min.session.timeout.ms': '1000',
    // After a kill the controller takes the old broker for alive until its session ends.
    'broker.session.timeout.ms': '3000',
    'broker.heartbeat.interval.ms': '500',
    'log.cleaner.backoff.ms': '100',
    ...(secure && secureProperties(secure)),
    ...properties,
  };
  return `${Object.entries(all)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')}\n`;
}

function secureProperties({ cert, key, username, password }: SecureListener): Record<string, string> {
  const listener = 'listener.name.secure';
  const oneLine = (pem: string): string => pem.trim().replaceAll('\n', '\\n');
  const login = 'org.apache.kafka.common.security.plain.PlainLoginModule required';
  return {
    [`${listener}.sasl.enabled.mechanisms`]: 'PLAIN',
    [`${listener}.plain.sasl.jaas.config`]: `${login} user_${username}="${password}";`,
    [`${listener}.ssl.keystore.type`]: 'PEM',
    [`${listener}.ssl.keystore.certificate.chain`]: oneLine(cert),
    [`${listener}.ssl.keystore.key`]: oneLine(key),
  };
}

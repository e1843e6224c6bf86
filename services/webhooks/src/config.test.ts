import { describe, expect, it } from '@jest/globals';
import { settingProblems } from '@millrace/testing';
import { webhooksProcessConfig } from './config.ts';

const needed = {
  DATABASE_URL: 'postgres://millrace@db/millrace',
  KAFKA_BROKERS: 'kafka-1:9092,kafka-2:9092',
  WEBHOOK_SECRET_KEYS: `k:${'x'.repeat(32)}`,
};

describe('the settings of a webhooks service that is a process of its own', () => {
  it('are right with what has no default, and name all that is missing', () => {
    expect(settingProblems(webhooksProcessConfig, needed)).toEqual([]);
    expect(settingProblems(webhooksProcessConfig, {})).toEqual(Object.keys(needed).sort());
  });

  it('are read together with what they belong to', () => {
    const halves = { ...needed, KAFKA_SASL_USERNAME: 'me' };
    expect(settingProblems(webhooksProcessConfig, halves)).toEqual([
      'KAFKA_SASL_MECHANISM',
      'KAFKA_SASL_PASSWORD',
    ]);
  });
});

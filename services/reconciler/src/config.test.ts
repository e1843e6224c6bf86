import { describe, expect, it } from '@jest/globals';
import { settingProblems } from '@millrace/testing';
import { reconcilerProcessConfig } from './config.ts';

const needed = {
  DATABASE_URL: 'postgres://millrace@db/millrace',
  KAFKA_BROKERS: 'kafka-1:9092,kafka-2:9092',
  S3_BUCKET: 'millrace',
};

describe('the settings of a reconciler that is a process of its own', () => {
  it('are right with what has no default, and name all that is missing', () => {
    expect(settingProblems(reconcilerProcessConfig, needed)).toEqual([]);
    expect(settingProblems(reconcilerProcessConfig, {})).toEqual(Object.keys(needed).sort());
  });

  it('are read together with what they belong to', () => {
    const halves = { ...needed, KAFKA_SASL_USERNAME: 'me', S3_ACCESS_KEY_ID: 'key' };
    expect(settingProblems(reconcilerProcessConfig, halves)).toEqual([
      'KAFKA_SASL_MECHANISM',
      'KAFKA_SASL_PASSWORD',
      'S3_SECRET_ACCESS_KEY',
    ]);
  });
});

import { describe } from '@jest/globals';
import { casesOf, familiesOf } from '../testing/media-cases.ts';
import { describeCases } from '../testing/media-suite.ts';

describe('media: picture', () => {
  describeCases(casesOf(familiesOf.picture));
});

// Ends what a killed command left running: node docker/local/end-leftovers.ts <state folder>.
import { endLeftovers } from './state.ts';

await endLeftovers(process.argv[2] ?? '.local');

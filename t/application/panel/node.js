// Packages: nodejs. Needs: node
const fs = require('fs');
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (!isMainThread) {
	parentPort.on('message', (n) => parentPort.postMessage(n * n % 1009));
} else {
	const worker = new Worker(__filename);
	const seen = new Map();
	let state = 1, answers = 0, asked = 0;
	const work = (n) => {
		for (let k = 0; k < n; k++) {
			state = (state * 69069 + 1) % 1048576;
			seen.set(state % 997, (seen.get(state % 997) || 0) + state % 1000);
		}
	};
	const end = () => {
		work(200000);
		let sum = 0;
		for (const v of seen.values())
			sum += v;
		console.log(state, seen.size, sum, answers);
		worker.terminate();
	};
	work(200000);
	worker.on('message', (n) => {
		if (asked < 2000)
			answers += n;
		if (++asked === 50)
			console.log('ready');
		if (asked >= 2000 && fs.existsSync('go'))
			end();
		else
			setTimeout(() => worker.postMessage(asked), asked < 2000 ? 0 : 5);
	});
	worker.postMessage(0);
}

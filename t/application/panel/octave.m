% Packages: octave. Needs: octave-cli
function [s, t] = work(s, t, n)
	for k = 1:n
		s = mod(s * 69069 + 1, 2^20);
		t(mod(s, 97) + 1) += mod(s, 1000);
	end
end
[s, t] = work(1, zeros(1, 97), 20000);
A = reshape(t, 1, 97)' * ones(1, 97) + diag(1:97);
puts("ready\n"); fflush(stdout);
while (! exist("go", "file"))
	B = inv(A + eye(97));
end
[s, t] = work(s, t, 20000);
printf("%d %d %.17g\n", s, sum(t), sum(sum(A * A)));

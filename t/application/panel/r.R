# Packages: r-base-core. Needs: Rscript
s <- 1
t <- numeric(97)
work <- function(n) for (k in 1:n) {
	s <<- (s * 69069 + 1) %% 2^20
	t[s %% 97 + 1] <<- t[s %% 97 + 1] + s %% 1000
}
set.seed(1)
work(20000)
x <- rnorm(5000)
cat("ready\n")
while (!file.exists("go")) sort(x * 2)
work(20000)
cat(s, sum(t), format(sum(x * rnorm(5000)), digits = 17), "\n")

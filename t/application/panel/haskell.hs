-- Packages: ghc. Needs: ghc
import Control.Concurrent
import Control.Monad
import qualified Data.Map.Strict as M
import System.Directory
import System.IO

work :: Int -> Int -> (Int, M.Map Int Int)
work seed n = go seed n M.empty
  where
    go s 0 m = (s, m)
    go s k m =
      let t = (s * 69069 + 1) `mod` 1048576
       in t `seq` go t (k - 1) (M.insertWith (+) (t `mod` 997) (t `mod` 1000) m)

total :: (Int, M.Map Int Int) -> Int
total (s, m) = M.foldlWithKey (\a k v -> (a * 31 + k * v) `mod` 1000000007) s m

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  print' <- newEmptyMVar
  forM_ [1 .. 4] $ \i -> forkIO $ do
    let first = total (work i 50000)
    putMVar print' $! first
    let wait n = do
          there <- doesFileExist "go"
          unless there $ total (work n 1000) `seq` threadDelay 1000 >> wait (n + 1)
    wait i
    putMVar print' $! first + total (work (i + 7) 50000)
  firsts <- replicateM 4 (takeMVar print')
  sum firsts `seq` putStrLn "ready"
  sums <- replicateM 4 (takeMVar print')
  print (sum sums)
